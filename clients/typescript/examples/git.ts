// Writes a line into a file of a repository and commits it. examples/client/git.py is the same in Python.
import { Freehold } from "../src/index.ts";

const [url = "http://localhost:3000", token = "", folder = "."] = process.argv.slice(2);
const home = new Freehold(url, { token });

const notes = `${folder}/notes.txt`;
const known = (await home.files.exists(notes)) ? new TextDecoder().decode((await home.files.read(notes)).content) : "";
await home.files.write(notes, `${known}One more line\n`);
await home.git.stage(folder, ["notes.txt"]);
const diff = await home.git.diff(folder, { file: "notes.txt", side: "index" });
console.log(...diff.text.split("\n").filter((line) => line.startsWith("+One")));
await home.git.commit(folder, "Write notes");
const [newest] = (await home.git.log(folder, { limit: 1 })).commits;
const state = await home.git.state(folder);
console.log(newest?.subject, newest?.id === state.commit && "is HEAD", state.files.length);
