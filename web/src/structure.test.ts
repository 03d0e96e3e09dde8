// Checks the rules of docs/architecture.md for this folder: which folder may import which, and which styles belong to whom.
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { expect, test } from "vitest";

const SRC = dirname(new URL(import.meta.url).pathname);

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" }).sort();
const scripts = files.filter((file) => /\.tsx?$/.test(file) && !file.includes(".test."));
const sheets = files.filter((file) => file.endsWith(".css"));
const read = (file: string) => readFileSync(join(SRC, file), "utf8");

/** What each folder may import. `app` is the root: nothing imports it but `main.ts`. */
const LAYERS: Record<string, readonly string[]> = {
  client: ["client"],
  language: ["language"],
  ui: ["client", "language", "ui"],
  data: ["client", "data"],
  features: ["client", "language", "ui", "data", "features"],
  // Beside them the list of pages of the documentation.
  app: ["client", "language", "ui", "data", "features", "app", ".."],
  "main.ts": ["app", "client", "ui"],
};

const layerOf = (file: string) => file.split("/")[0] ?? "";
const featureOf = (file: string) => (layerOf(file) === "features" ? file.split("/")[1] : undefined);

/** The files that a file imports, as paths without an extension. */
function importsOf(file: string): string[] {
  const found = read(file).matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]*)"/g);
  return [...found].map(([, target = ""]) => relative(SRC, join(SRC, dirname(file), target)));
}

const imports = scripts.flatMap((from) => importsOf(from).map((to) => ({ from, to })));

test("a folder imports only the folders below it", () => {
  const forbidden = imports.filter(({ from, to }) => !LAYERS[layerOf(from)]?.includes(layerOf(to)));
  expect(forbidden.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  expect(imports.length).toBeGreaterThan(300);
});

test("features do not import each other in a circle", () => {
  const graph = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    const [user, used] = [featureOf(from), featureOf(to)];
    if (user === undefined || used === undefined || user === used) continue;
    graph.set(user, (graph.get(user) ?? new Set()).add(used));
  }
  const circles: string[] = [];
  const visit = (feature: string, path: readonly string[]) => {
    if (path.includes(feature)) circles.push([...path.slice(path.indexOf(feature)), feature].join(" → "));
    else for (const used of graph.get(feature) ?? []) visit(used, [...path, feature]);
  };
  for (const feature of graph.keys()) visit(feature, []);
  expect([...new Set(circles)]).toEqual([]);
  expect(graph.size).toBeGreaterThan(5);
});

test("a stylesheet is imported by a script of its own folder", () => {
  const imported = imports.filter(({ to }) => to.endsWith(".css"));
  const foreign = imported.filter(({ from, to }) => layerOf(from) !== "main.ts" && dirname(from) !== dirname(to));
  expect(foreign.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  expect(sheets.filter((sheet) => !imported.some(({ to }) => to === sheet))).toEqual([]);
});

/** The selectors of a stylesheet, without comments, declarations and at-rules. */
function selectorsOf(sheet: string): string[] {
  const text = read(sheet)
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/@keyframes[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}/g, "");
  return [...text.matchAll(/([^{};]+)\{/g)]
    .map(([, selector = ""]) => selector.trim())
    .filter((one) => !one.startsWith("@"));
}

/** Splits at the commas that are not inside parentheses. */
const alternativesOf = (selector: string) => selector.split(/,(?![^(]*\))/).map((one) => one.trim());

const classesOf = (selector: string) => [...selector.matchAll(/\.(-?[_a-zA-Z][\w-]*)/g)].map(([, name = ""]) => name);

/** Classes that libraries set themselves. */
const isForeign = (name: string) => /^(?:tok-|cm-|xterm|contains-task-list$)/.test(name);

const isUi = (sheet: string) => layerOf(sheet) === "ui";
const isOwn = (name: string, sheet: string) => {
  const prefix = basename(sheet, ".css");
  return name === prefix || name.startsWith(`${prefix}-`);
};
const uiClasses = new Set(sheets.filter(isUi).flatMap(selectorsOf).flatMap(classesOf));

test("a stylesheet outside of ui styles only its own classes, which begin with its name", () => {
  const wrong = sheets
    .filter((sheet) => !isUi(sheet))
    .flatMap((sheet) =>
      selectorsOf(sheet)
        .flatMap(alternativesOf)
        .filter((selector) => {
          const classes = classesOf(selector).filter((name) => !isForeign(name));
          const hasOwn = classes.some((name) => isOwn(name, sheet));
          return !hasOwn || classes.some((name) => !isOwn(name, sheet) && !uiClasses.has(name));
        })
        .map((selector) => `${sheet}: ${selector}`),
    );
  expect(wrong).toEqual([]);
});

const folderOf = (file: string) =>
  layerOf(file) === "features" ? dirname(file).split("/").slice(0, 2).join("/") : layerOf(file);

test("a class is used only in the folder that styles it, and every styled class is used", () => {
  const owners = new Map<string, string>();
  for (const sheet of sheets)
    for (const name of selectorsOf(sheet).flatMap(classesOf))
      if (!isForeign(name) && !uiClasses.has(name)) owners.set(name, folderOf(sheet));
  const words = new Map(scripts.map((file) => [file, new Set(read(file).match(/[a-zA-Z][\w-]*/g))]));
  const usedIn = (name: string) => scripts.filter((file) => words.get(file)?.has(name));
  const unused = [...owners.keys(), ...uiClasses].filter((name) => !isForeign(name) && usedIn(name).length === 0);
  expect(unused).toEqual([]);
  const classNames = new Map(
    scripts.map((file) => [
      file,
      new Set(
        [...read(file).matchAll(/className=[{]?["`]([^"`]*)/g)].flatMap(([, value = ""]) => value.split(/[\s${}]+/)),
      ),
    ]),
  );
  const stolen = [...owners].flatMap(([name, owner]) =>
    scripts
      .filter((file) => classNames.get(file)?.has(name) && folderOf(file) !== owner)
      .map((file) => `${file} uses .${name} of ${owner}`),
  );
  expect(stolen).toEqual([]);
});
