// An agent asks, changes a file, and is undone. examples/client/undo.py is the same in Python.
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = "", prompt = "Write a haiku into haiku.txt"] = process.argv.slice(2);
const home = new Freehold(url, { token });

const session = await home.sessions.open();
for await (const update of session.prompt(prompt)) {
  if (update.kind === "approval" && update.data["state"] === "pending") {
    console.log("asked:", update.data["title"]);
    await session.answer(String(update.data["id"]), "once");
  }
}
const [entry] = await home.history.log({ limit: 1 });
const { changes } = await home.history.changes(entry?.id ?? 0);
const exists = async (path = "") => ((await home.files.exists(`/${path}`)) ? "True" : "False");
for (const { word, path } of changes) console.log(word, path, await exists(path));
console.log((await home.history.undo()).summary);
for (const { path } of changes) console.log(path, await exists(path));
