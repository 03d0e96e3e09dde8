import { expect, test } from "vitest";
import type { CodeEnd, CodePart } from "../../client/api";
import { RequestFailed } from "../../client/http";
import { Notebook } from "./notebook";

const END: CodeEnd = { error: null, exit_code: 0, limit: null, duration: 0.01, processor: 0.01 };
const GONE = { code: "computer.no-context", message: "There is no context", hint: "" };

class FakeStorage {
  readonly values = new Map<string, string>();
  getItem = (key: string) => this.values.get(key) ?? null;
  setItem = (key: string, value: string) => void this.values.set(key, value);
  removeItem = (key: string) => void this.values.delete(key);
}

/** A gateway whose contexts answer with what `answers` says for their code. */
class FakeGateway {
  readonly calls: string[] = [];
  readonly code = new FakeStorage();
  readonly tab = new FakeStorage();
  readonly contexts = new Set<string>();
  answers: Record<string, CodePart[]> = {};
  /** Streams of this code wait for it. */
  held: Record<string, Promise<void>> = {};

  request = async <T>(path: string, init: { method?: string } = {}): Promise<T> => {
    this.calls.push(`${init.method ?? "GET"} ${path}`);
    if (init.method === "DELETE") this.contexts.delete(path.split("/").at(-1) ?? "");
    const id = `c${this.contexts.size + this.calls.length}`;
    if (path === "/v1/code/contexts") this.contexts.add(id);
    return { id } as T;
  };

  async *lines(path: string, body: unknown): AsyncGenerator<CodePart> {
    const { code } = body as { code: string };
    const context = path.split("/").at(-2) ?? "";
    this.calls.push(`run ${code}`);
    if (!this.contexts.has(context)) throw new RequestFailed(404, GONE);
    await this.held[code];
    yield* this.answers[code] ?? [{ output: { stream: "stdout", text: code } }, { end: END }];
  }

  open = () =>
    new Notebook({
      request: this.request,
      lines: (path, body) => this.lines(path, body),
      code: this.code,
      tab: this.tab,
    });
}

/** Waits until nothing runs any more. */
async function settled(notebook: Notebook): Promise<void> {
  const isDone = () => notebook.state().cells.every(({ run }) => run === null || run.state === "ended");
  while (!isDone()) await new Promise((resolve) => setTimeout(resolve, 0));
  await new Promise((resolve) => setTimeout(resolve, 0));
}

function filled(gateway: FakeGateway, ...codes: string[]): { notebook: Notebook; ids: string[] } {
  const notebook = gateway.open();
  const ids = codes.map((code, at) => {
    const id = at === 0 ? notebook.state().cells[0]!.id : notebook.addCell();
    notebook.setCode(id, code);
    return id;
  });
  return { notebook, ids };
}

const texts = (notebook: Notebook) =>
  notebook.state().cells.map(({ run }) => run?.shown.map((one) => (one.kind === "text" ? one.text : "item")).join());

test("all cells run in order and in one context", async () => {
  const gateway = new FakeGateway();
  const { notebook } = filled(gateway, "a", "b");
  notebook.runAll();
  await settled(notebook);
  expect(gateway.calls).toEqual(["POST /v1/code/contexts", "run a", "run b"]);
  expect(texts(notebook)).toEqual(["a", "b"]);
});

test("after a failure the others do not run", async () => {
  const gateway = new FakeGateway();
  gateway.answers = { a: [{ end: { ...END, exit_code: 1, error: { name: "E", message: "", traceback: "" } } }] };
  const { notebook } = filled(gateway, "a", "b");
  notebook.runAll();
  await settled(notebook);
  expect(gateway.calls).not.toContain("run b");
  expect(notebook.state().cells[1]?.run).toBeNull();
});

test("a context that is gone is replaced, and the cell says that the variables are gone", async () => {
  const gateway = new FakeGateway();
  const { notebook, ids } = filled(gateway, "a");
  notebook.run(ids[0]!);
  await settled(notebook);
  gateway.contexts.clear();
  notebook.run(ids[0]!);
  await settled(notebook);
  expect(notebook.state().cells[0]?.run).toMatchObject({ isFresh: true, state: "ended", problem: null });
  expect(texts(notebook)).toEqual(["a"]);
  expect(gateway.calls.filter((call) => call.startsWith("POST"))).toHaveLength(2);
});

test("stop interrupts the context and forgets what waits", async () => {
  const gateway = new FakeGateway();
  let release: () => void = () => undefined;
  gateway.held = { a: new Promise((resolve) => (release = resolve)) };
  const { notebook } = filled(gateway, "a", "b");
  notebook.runAll();
  while (!gateway.calls.includes("run a")) await new Promise((resolve) => setTimeout(resolve, 0));
  await notebook.stop();
  expect(gateway.calls.at(-1)).toMatch(/^POST \/v1\/code\/contexts\/.*\/interrupt$/);
  release();
  await settled(notebook);
  expect(gateway.calls).not.toContain("run b");
});

test("other settings begin with another context", async () => {
  const gateway = new FakeGateway();
  const { notebook } = filled(gateway, "a");
  notebook.runAll();
  await settled(notebook);
  await notebook.configure({ language: "javascript", files: "none", network: false, packages: [] });
  expect(gateway.contexts.size).toBe(0);
  expect(notebook.state().context).toBeNull();
});

test("a problem of the gateway is shown in the cell", async () => {
  const gateway = new FakeGateway();
  gateway.answers = { a: [{ failure: { code: "computer.busy", message: "Busy", hint: "Wait" } }] };
  const { notebook } = filled(gateway, "a");
  notebook.runAll();
  await settled(notebook);
  expect(notebook.state().cells[0]?.run?.problem?.message).toBe("Busy");
});

test("a stream that ends in the middle ends its cell", async () => {
  const gateway = new FakeGateway();
  gateway.answers = { a: [{ output: { stream: "stdout", text: "half" } }] };
  const { notebook } = filled(gateway, "a");
  notebook.runAll();
  await settled(notebook);
  expect(notebook.state().cells[0]?.run).toMatchObject({ state: "ended", end: null });
});

test("code and context survive a reload of the page", async () => {
  const gateway = new FakeGateway();
  const { notebook } = filled(gateway, "a", "b");
  notebook.runAll();
  await settled(notebook);
  const again = gateway.open();
  expect(again.state().cells.map((cell) => cell.code)).toEqual(["a", "b"]);
  expect(again.state().context).toBe(notebook.state().context);
});

test("a storage that is full loses nothing of the page, and much output is drawn in few steps", async () => {
  const gateway = new FakeGateway();
  gateway.code.setItem = () => {
    throw new Error("full");
  };
  gateway.answers = {
    a: [...Array.from({ length: 500 }, () => ({ output: { stream: "stdout" as const, text: "x" } })), { end: END }],
  };
  const { notebook } = filled(gateway, "a");
  let drawn = 0;
  notebook.subscribe(() => drawn++);
  notebook.runAll();
  await settled(notebook);
  expect(texts(notebook)).toEqual(["x".repeat(500)]);
  expect(drawn).toBeLessThan(100);
});

test("cells are moved and removed, and one is always there", () => {
  const { notebook, ids } = filled(new FakeGateway(), "a", "b", "c");
  notebook.moveCell(ids[2]!, -1);
  notebook.moveCell(ids[0]!, -1);
  notebook.removeCell(ids[1]!);
  expect(notebook.state().cells.map((cell) => cell.code)).toEqual(["a", "c"]);
  expect(notebook.nextCell(ids[0]!)).toBe(ids[2]);
  notebook.removeCell(ids[0]!);
  notebook.removeCell(ids[2]!);
  expect(notebook.state().cells.map((cell) => cell.code)).toEqual([""]);
});
