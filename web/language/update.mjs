/** Writes src/language/en.json: every message of the sources, in the order of the files. `node language/update.mjs` */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { findMessages, isSource } from "./messages.mjs";

const SRC = resolve(dirname(fileURLToPath(import.meta.url)), "../src");
const files = readdirSync(SRC, { recursive: true, encoding: "utf8" }).sort();
const messages = new Set(
  files
    .map((file) => join(SRC, file))
    .filter(isSource)
    .flatMap((file) => findMessages(readFileSync(file, "utf8"), file).map((one) => one.message)),
);
writeFileSync(join(SRC, "language/en.json"), `${JSON.stringify([...messages], null, 2)}\n`);
