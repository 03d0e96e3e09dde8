// Makes a backup and waits until it is there. examples/client/backup.py is the same in Python.
import { setTimeout } from "node:timers/promises";
import { Freehold, RequestFailed } from "../src/index.ts";

const [url = "http://localhost:3000", token = ""] = process.argv.slice(2);
const home = new Freehold(url, { token });

try {
  await home.backup.start();
} catch (error) {
  // One is being made already.
  if (!(error instanceof RequestFailed && error.problem.code === "backup.busy")) throw error;
}
let info = await home.backup.get();
while (info.running !== null || info.last === null) {
  await setTimeout(200);
  info = await home.backup.get();
}
console.log(info.last.files > 0 ? "has files" : "is empty");
