// What models cost, a limit for it, a secret, and the kill switch. examples/client/usage.py is the same in Python.
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = ""] = process.argv.slice(2);
const home = new Freehold(url, { token });

for (const row of (await home.usage.report("provider")).rows) console.log("used", ...row.key, row.requests);
for (const budget of await home.budgets.set("*", { dayCost: 2.5 }))
  console.log("budget", budget.scope, budget.limit, budget.of);
await home.budgets.set("*"); // those of the manifest apply again
await home.secrets.set("example", "a value that no call returns");
const secrets = (await home.secrets.list()).map((one) => one.name);
console.log("secret", ...secrets.filter((name) => name === "example"));
await home.secrets.remove("example");
const programs = (await home.programs.state()).programs.map((one) => one.name);
console.log("runs", ...programs.filter((name) => name === "gateway"));
console.log("stopped:", (await home.killSwitch.stop("to try it")).why);
console.log((await home.killSwitch.lift()).stopped ? "stopped" : "lifted");
