// A Python file with durable steps, which asks once. examples/client/workflows.py is the same in Python.
import { setTimeout } from "node:timers/promises";
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = "", file = "flows/nightly.py"] = process.argv.slice(2);
const home = new Freehold(url, { token });

const begun = await home.workflows.run(file, { week: 12 }, { budget: 0.5 });
let flow = await home.workflows.get(begun.id);
while (flow.finished === null) {
  for (const step of flow.steps) {
    if (step.kind !== "ask" || step.state !== "waiting") continue;
    console.log(step.question, ...step.choices);
    await home.workflows.answer(flow.id, step.place, step.choices[0] ?? "");
  }
  await setTimeout(200);
  flow = await home.workflows.get(flow.id);
}
console.log(flow.state, flow.result);
