// Work that begins by itself. examples/client/routines.py is the same in Python.
import { setTimeout } from "node:timers/promises";
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = ""] = process.argv.slice(2);
const home = new Freehold(url, { token });

const spec = { cron: "0 8 * * MON", command: "date >> /workspace/mondays.txt" };
console.log((await home.routines.plan(spec, { count: 3 })).times.length);
console.log((await home.routines.add("mondays", spec)).trigger);
let run = await home.routines.run("mondays");
while (run.finished === null) {
  await setTimeout(200);
  run = await home.routines.getRun("mondays", run.id);
}
console.log(...(await home.routines.runs("mondays", { limit: 1 })).runs.map((one) => one.state));
console.log((await home.routines.pause("mondays")).state);
await home.routines.remove("mondays");
