// An agent in a computer and a copy of its own. examples/client/runs.py is the same in Python.
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = "", prompt = "Which files are here?"] = process.argv.slice(2);
const home = new Freehold(url, { token });

const begun = await home.runs.spawn(prompt, { folder: ".", permissions: ["network"] });
for await (const event of home.runs.stream(begun.id)) {
  if (event.kind === "message") console.log(event.data["text"]);
}
const run = await home.runs.get(begun.id);
console.log(run.state, run.added, run.changed, run.removed);
for (const file of (await home.runs.changes(run.id)).files) console.log(file.kind, file.path);
if (run.outcome === "pending") console.log((await home.runs.takeChanges(run.id, "drop")).outcome);
