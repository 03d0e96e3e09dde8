/**
 * Writes dist/sw.js: the service worker with the files of this build and the pages that the gateway serves. A browser has
 * one worker for the page, so what shows push messages is a part of it.
 *
 *   node web/worker/build.mjs DIST
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROUTES = resolve(HERE, "../../src/freehold/gateway/routes/pages.py");

/** The pages of the control center, as the gateway lists them. */
function readPages() {
  const list = /^PAGES = \(\n(.*?)^\)/ms.exec(readFileSync(ROUTES, "utf8"));
  if (list === null) throw new Error(`${ROUTES} has no PAGES`);
  return [...list[1].matchAll(/"(\/[^"]*)"/g)].map((found) => found[1]);
}

const dist = resolve(process.argv[2] ?? "dist");
const index = readFileSync(join(dist, "index.html"), "utf8");
const linked = [...index.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map((found) => found[1]);
const shell = ["/", ...new Set(linked)];
// A change of any built file is another version, also one that the first page does not load.
const names = readdirSync(join(dist, "assets")).sort().join("\n");
const version = createHash("sha256")
  .update(index)
  .update(names)
  .update(readFileSync(join(HERE, "push.js")))
  .digest("hex")
  .slice(0, 12);
const source = ["sw.js", "push.js"]
  .map((name) => readFileSync(join(HERE, name), "utf8"))
  .join("\n")
  .replace("__VERSION__", version)
  .replace("__SHELL__", JSON.stringify(shell))
  .replace("__PAGES__", JSON.stringify(readPages()));
writeFileSync(join(dist, "sw.js"), source);
