import { expect, test } from "vitest";
import type { CodeEnd, CodeItem } from "../../client/api";
import {
  addPart,
  bytesOf,
  contextRequest,
  durationText,
  endText,
  newRun,
  packagesOf,
  pictureOf,
  readStored,
  storedForm,
  succeeded,
  tableOf,
  valueText,
} from "./notebook.logic";

const END: CodeEnd = { error: null, exit_code: 0, limit: null, duration: 0.01, processor: 0.01 };
const item = (fields: Partial<CodeItem>): CodeItem => ({
  role: "value",
  type: "json",
  name: "",
  text: null,
  data: null,
  ...fields,
});

test("text of the same stream is joined, and everything stays in its order", () => {
  const parts = [
    { output: { stream: "stdout" as const, text: "a" } },
    { output: { stream: "stdout" as const, text: "b" } },
    { output: { stream: "stderr" as const, text: "c" } },
    { item: item({ text: "1" }) },
    { output: { stream: "stdout" as const, text: "d" } },
    { end: END },
  ];
  const run = parts.reduce(addPart, newRun(1));
  expect(run.shown.map((one) => (one.kind === "text" ? one.stream + one.text : one.item.text))).toEqual([
    "stdoutab",
    "stderrc",
    "1",
    "stdoutd",
  ]);
  expect(run.state).toBe("ended");
  expect(succeeded(run)).toBe(true);
});

test("a run that failed, or met a limit, has not succeeded", () => {
  expect(succeeded(addPart(newRun(1), { end: { ...END, exit_code: 1 } }))).toBe(false);
  expect(succeeded(addPart(newRun(1), { end: { ...END, limit: "memory", exit_code: 1 } }))).toBe(false);
  const failed = addPart(newRun(1), { failure: { code: "computer.busy", message: "Busy", hint: "" } });
  expect([failed.state, succeeded(failed), failed.problem?.message]).toEqual(["ended", false, "Busy"]);
});

test("the end is told in words", () => {
  expect(endText(END)).toBeNull();
  expect(endText({ ...END, limit: "wall_time" })).toBe("Ended: it ran for 60 seconds.");
  expect(endText({ ...END, exit_code: -9 })).toBe("Ended by signal 9.");
  expect(endText({ ...END, exit_code: 3 })).toBe("Ended with exit code 3.");
  expect([durationText(0.0004), durationText(0.25), durationText(1.25), durationText(42.4)]).toEqual([
    "1 ms",
    "250 ms",
    "1.3 s",
    "42 s",
  ]);
});

test("a value is shown as text or as JSON on several lines", () => {
  expect(valueText(item({ text: '"two\\nlines"' }))).toBe("two\nlines");
  expect(valueText(item({ text: '{"a": [1]}' }))).toBe('{"a": [1]}');
  const long = "x".repeat(100);
  expect(valueText(item({ text: `["${long}"]` }))).toBe(`[\n  "${long}"\n]`);
  expect(valueText(item({ text: "{broken" }))).toBe("{broken");
  expect(valueText(item({ type: "text", text: "<function>" }))).toBe("<function>");
});

test("a table is read, and what is not one is not", () => {
  const text = JSON.stringify({ columns: ["a", "b"], rows: [[1, null]], index: [7], total: 2000 });
  expect(tableOf(item({ type: "table", text }))).toEqual({
    columns: ["a", "b"],
    rows: [[1, null]],
    index: [7],
    total: 2000,
  });
  for (const broken of ["{}", "[]", "null", "{", '{"columns":[],"rows":[1]}'])
    expect(tableOf(item({ type: "table", text: broken }))).toBeNull();
});

test("a picture is an address of data, also one that came as text", () => {
  expect(pictureOf(item({ type: "image/png", data: "AAEC" }))).toBe("data:image/png;base64,AAEC");
  const svg = pictureOf(item({ type: "image/svg+xml", text: "<svg>ä</svg>" }));
  expect(svg).toMatch(/^data:image\/svg\+xml;base64,/);
  expect(new TextDecoder().decode(bytesOf(item({ data: svg!.split(",")[1]! })))).toBe("<svg>ä</svg>");
  expect(pictureOf(item({ role: "file", type: "image/png", data: "AAEC" }))).toBeNull();
  expect(pictureOf(item({ type: "text", text: "no" }))).toBeNull();
});

test("a context gets exactly what the settings say", () => {
  const grants = (files: "none" | "read" | "write", network: boolean, packages: string[] = []) =>
    contextRequest({ language: "python", files, network, packages }).grants;
  expect(grants("none", false)).toEqual({ files: {}, network: false, packages: [] });
  expect(grants("read", true)).toEqual({ files: { "/workspace": "r" }, network: true, packages: [] });
  expect(grants("write", false, ["pandas"])).toEqual({
    files: { "/workspace": "rw" },
    network: false,
    packages: ["pandas"],
  });
});

test("packages are named as people write them", () => {
  expect(packagesOf("")).toEqual([]);
  expect(packagesOf(" pandas,numpy  yaml, pandas,")).toEqual(["pandas", "numpy", "yaml"]);
});

test("the code is kept, and whatever else is stored there is replaced by an empty notebook", () => {
  const settings = { language: "wasm", files: "none", network: true, packages: ["one"] } as const;
  const cells = [{ id: "1", code: "x", run: null }];
  expect(readStored(storedForm({ settings, cells, context: "c" }))).toEqual({ settings, codes: ["x"] });
  const empty = { settings: { language: "python", files: "read", network: false, packages: [] }, codes: [""] };
  for (const broken of [
    null,
    "",
    "{",
    "null",
    '{"cells":[1]}',
    '{"settings":{"language":"cobol","files":"all","packages":"x"}}',
  ])
    expect(readStored(broken)).toEqual(empty);
});
