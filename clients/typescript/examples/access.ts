// Who may come in, and which secrets agents may use. examples/client/access.py is the same in Python.
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = "", key = `${homedir()}/.ssh/id_ed25519.pub`] = process.argv.slice(2);
const home = new Freehold(url, { token });

console.log((await home.me()).who);
for (const one of await home.tokens.list()) console.log("token", one.name, ...one.scopes.sort());
for (const browser of await home.signIns.list()) console.log("browser", browser.label, browser.method);
for (const one of await home.credentials.list()) console.log("credential", one.name, one.host, one.writes);
const made = await home.ssh.certify(await readFile(key, "utf8"), { hours: 1, label: "laptop" });
console.log("ssh", ...(await home.ssh.list()).filter((one) => !one.revoked).map((one) => one.label));
await home.ssh.revoke(made.id);
