// The last events of the timeline, then new ones as they happen. examples/client/timeline.py is the same in Python.
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = "", count = "3"] = process.argv.slice(2);
const home = new Freehold(url, { token });

const { events } = await home.timeline.read({ limit: 1 });
let left = Number(count);
for await (const event of home.timeline.follow({ after: (events[0]?.seq ?? 1) - 1 })) {
  console.log(event.seq, event.kind);
  if (--left === 0) break;
}
