// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { TranscriptItem } from "./TranscriptItem";
import { type Item, outputEnd, transcriptItems } from "./transcript.logic";
import { TranscriptContext, type TranscriptShared } from "./transcriptContext";

vi.mock("./ToolCard", () => ({
  ToolCard: () => {
    throw new Error("rows is not a list");
  },
}));

const shared: TranscriptShared = {
  session: "s",
  toggled: new Set(),
  toggle: () => undefined,
  endedTurns: new Set(),
  lastPrompt: null,
  turnStateOf: () => ({ kind: "none" }) as unknown as ReturnType<TranscriptShared["turnStateOf"]>,
  onAction: () => undefined,
  onRewind: () => undefined,
};

let place: HTMLDivElement;
const draw = (items: readonly Item[]) =>
  act(async () =>
    createRoot(place).render(
      <TranscriptContext value={shared}>
        {items.map((item) => (
          <TranscriptItem key={item.key} item={item} />
        ))}
      </TranscriptContext>,
    ),
  );

beforeEach(() => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  place = document.createElement("div");
  document.body.append(place);
});
afterEach(() => {
  place.remove();
  vi.restoreAllMocks();
});

const message = (key: string, text: string): Item => ({ kind: "message", key, seq: 1, text, live: false, cut: false });

test("an item that cannot be drawn is shown as plain text, and the items beside it stay", async () => {
  const tool: Item = {
    kind: "tool",
    key: "tool",
    turn: 1,
    title: "Look",
    does: "read",
    status: "completed",
    locations: [],
    parts: [{ type: "text", text: "its output" }],
    input: "its input",
  };
  await draw([message("a", "**before**"), tool, message("b", "> ".repeat(2_000)), message("c", "*after*")]);
  await vi.waitFor(() => expect(place.querySelector("em")?.textContent).toBe("after"), 30_000);
  expect(place.querySelector("strong")?.textContent).toBe("before");
  expect(place.textContent).toContain("its output");
  expect(place.textContent).toContain("could not be drawn");
  expect(place.querySelectorAll("blockquote")).toHaveLength(0);
});

test("a plan of many long steps draws its first ones", async () => {
  const entries = Array.from({ length: 5_000 }, () => ({ content: "x".repeat(100_000), status: "pending" }));
  await draw([{ kind: "plan", key: "plan", entries }]);
  expect(place.querySelectorAll("li")).toHaveLength(100);
  expect(place.textContent?.length).toBeLessThan(250_000);
  expect(place.querySelector("button")?.textContent).toBe("Show all 5000 steps");
});

test("an event that cannot be read is one line among the others", () => {
  let deep: unknown = "x";
  for (let depth = 0; depth < 50_000; depth++) deep = [deep];
  const event = (seq: number, kind: string, data: Record<string, unknown>) => ({
    seq,
    at: "",
    turn: 1,
    kind,
    data,
  });
  const items = transcriptItems([
    event(1, "message", { role: "agent", text: "hello" }),
    event(2, "tool", { id: "t", title: "x", raw_input: deep }),
  ] as never);
  expect(items.map((item) => item.kind)).toEqual(["message", "error"]);
});

test("an output of empty lines is cut in one pass", () => {
  expect(outputEnd(`${"\n".repeat(1_000_000)}x`).shown.endsWith("x")).toBe(true);
  expect(outputEnd("\n".repeat(1_000_000)).shown).toBe("");
});
