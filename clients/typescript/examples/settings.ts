// Which models and agents there are, and which hosts may be reached. examples/client/settings.py is the same in Python.
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = ""] = process.argv.slice(2);
const home = new Freehold(url, { token });

for (const provider of (await home.models.state()).models)
  console.log("model", provider.name, provider.kind, provider.default ? "default" : "");
for (const agent of await home.agents.list()) if (agent.installed) console.log("agent", agent.name);
const allowed = await home.egress.allow("docs.example.org");
console.log(...allowed.rules.filter((rule) => rule["verdict"] === "allow").map((rule) => rule["rule"]));
await home.egress.forget("docs.example.org");
console.log((await home.health()).ready ? "ready" : "not ready");
