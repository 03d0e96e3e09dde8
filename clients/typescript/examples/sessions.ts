// Two prompts in a session, and a request that is rejected. examples/client/sessions.py is the same in Python.
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = "", ...prompts] = process.argv.slice(2);
const home = new Freehold(url, { token });

const session = await home.sessions.open(null, { title: "The roof" });
for (const prompt of prompts.length > 0 ? prompts : ["Which files are here?", "Delete them"]) {
  for await (const update of session.prompt(prompt)) {
    // With a number it is whole, without one a part.
    if (update.kind === "message" && update.seq !== null) console.log(update.data["text"]);
    if (update.kind === "approval" && update.data["state"] === "pending") {
      console.log(...(await home.sessions.approvals()).map((asked) => asked.title));
      console.log((await session.answer(String(update.data["id"]), "reject")).state);
    }
  }
}
console.log(...(await home.sessions.list("roof")).sessions.map((one) => one.title));
await home.sessions.delete(session.id);
