import { expect, test } from "vitest";
import type { SessionEvent } from "../../../client/api";
import type { Stream } from "./events.logic";
import { endingText, isWorking, outputEnd, transcriptItems, usageText, withStreams } from "./transcript.logic";

const event = (
  seq: number,
  kind: string,
  data: Record<string, unknown> = {},
  turn: number | null = 1,
): SessionEvent => ({ seq, at: "", turn, kind, data });
const kinds = (events: SessionEvent[]) => transcriptItems(events).map((item) => item.kind);

test("each item is drawn once, in its place and its last state", () => {
  const items = transcriptItems([
    event(1, "turn.started", { prompt: { text: "hello", files: ["a.py"], images: [{ mime: "image/png", size: 9 }] } }),
    event(2, "tool", { id: "t", title: "ls", status: "pending", content: [] }),
    event(3, "plan", { entries: [{ content: "look", status: "pending" }] }),
    event(4, "message", { id: "m", role: "agent", text: "hi" }),
    event(5, "tool", { id: "t", title: "ls", status: "completed", content: [{ type: "text", text: "a" }] }),
    event(6, "plan", { entries: [{ content: "look", status: "completed" }] }),
    event(7, "turn.ended", {
      stop_reason: "end_turn",
      changes: { added: 1, entry: 7, before: 5 },
      usage: { input: 10, output: 5, cost: null },
    }),
  ]);
  expect(items.map((item) => item.kind)).toEqual(["prompt", "tool", "plan", "message", "ended"]);
  expect(items[0]).toMatchObject({ files: ["a.py"], images: [{ mime: "image/png" }], queued: false });
  expect(items[1]).toMatchObject({ status: "completed", parts: [{ text: "a" }] });
  expect(items[2]).toMatchObject({ entries: [{ status: "completed" }] });
  expect(items[4]).toMatchObject({
    changes: { added: 1, entry: 7, before: 5 },
    usage: "10 tokens in, 5 out · cost unknown",
  });
});

test("an id that an agent uses again in another turn, or after a tool, hides nothing", () => {
  const items = transcriptItems([
    event(1, "message", { id: "message-1", text: "first" }, 1),
    event(2, "tool", { id: "1", title: "a", status: "completed" }, 1),
    event(3, "message", { id: "message-1", text: "second" }, 1),
    event(4, "message", { id: "message-1", text: "third" }, 2),
    event(5, "tool", { id: "1", title: "b", status: "completed" }, 2),
  ]);
  expect(items.map((item) => ("text" in item ? item.text : "title" in item ? item.title : ""))).toEqual([
    "first",
    "a",
    "second",
    "third",
    "b",
  ]);
});

test("an item stays the same object until it changes", () => {
  const events = [event(1, "message", { id: "m", text: "a" }), event(2, "tool", { id: "t", status: "pending" })];
  const before = transcriptItems(events);
  const after = transcriptItems([...events, event(3, "tool", { id: "t", status: "completed" })]);
  expect(after[0]).toBe(before[0]);
  expect(after[1]).not.toBe(before[1]);
});

test("a queued prompt is at the end, moves to where it was sent, and disappears when it is dropped", () => {
  const events = [
    event(1, "turn.started", { prompt: { text: "one" } }),
    event(2, "queued", { text: "two", key: "k" }, 2),
    event(3, "message", { text: "words" }, 1),
  ];
  expect(kinds(events)).toEqual(["prompt", "message", "prompt"]);
  expect(transcriptItems(events)[2]).toMatchObject({ text: "two", queued: true });
  const sent = [...events, event(4, "turn.ended", {}, 1), event(5, "turn.started", { prompt: { text: "two" } }, 2)];
  expect(transcriptItems(sent).at(-1)).toMatchObject({ kind: "prompt", text: "two", queued: false });
  expect(kinds([...events, event(4, "dropped", { key: "k" }, 2)])).toEqual(["prompt", "message"]);
});

test("a text that is being written comes before queued prompts", () => {
  const items = transcriptItems([
    event(1, "turn.started", { prompt: { text: "one" } }),
    event(2, "queued", { text: "two" }, 2),
  ]);
  const streams = new Map<string, Stream>([
    ["message m", { kind: "message", id: "m", key: "live", text: "hal", end: 3 }],
  ]);
  expect(withStreams(items, streams)).toMatchObject([
    { kind: "prompt" },
    { kind: "message", text: "hal", live: true },
    { queued: true },
  ]);
  expect(withStreams(items, new Map())).toBe(items);
});

test("a turn that has ended is not shown as working", () => {
  const items = transcriptItems([event(1, "turn.started", { prompt: { text: "one" } }), event(5, "turn.ended")]);
  expect([null, 3, 5].map((asOf) => isWorking(items, asOf))).toEqual([false, false, true]);
  expect(isWorking(transcriptItems([event(1, "turn.started", { prompt: { text: "one" } })]), 0)).toBe(true);
});

test("an open request is shown in the dock, an answered one in the transcriptItems", () => {
  const asked = event(1, "approval", { id: "a", title: "rm", state: "pending" });
  expect(kinds([asked])).toEqual([]);
  expect(
    transcriptItems([asked, event(2, "approval", { id: "a", title: "rm", state: "answered", answer: "reject" })]),
  ).toMatchObject([{ answer: "reject" }]);
});

test("a command is shown when the title does not contain it", () => {
  const tool = (title: string, raw: unknown) =>
    transcriptItems([event(1, "tool", { id: "t", title, raw_input: raw })])[0];
  expect(tool("Listing files", { command: "rm -rf ." })).toMatchObject({ input: "rm -rf ." });
  expect(tool("run `ls -a`", { command: "ls -a" })).toMatchObject({ input: "" });
  expect(tool("x", { command: ["ls", "-a"] })).toMatchObject({ input: "ls -a" });
});

test("a cost is shown, or called unknown", () => {
  expect(usageText({ input: 1234, output: 5, cost: 0.0123 })).toBe("1,234 tokens in, 5 out · $0.0123");
  expect(usageText({ input: 1, output: 1, cost: 0.00001 })).toBe("1 tokens in, 1 out · under $0.0001");
  expect(usageText(null)).toBe("tokens unknown · cost unknown");
});

test("the end of a long output is shown", () => {
  const output = Array.from({ length: 100 }, (_, line) => `line ${line}`).join("\n");
  expect(outputEnd(output)).toMatchObject({ hidden: 84 });
  expect(outputEnd(output).shown.split("\n").at(-1)).toBe("line 99");
  expect(outputEnd("short\n")).toEqual({ shown: "short", hidden: 0 });
  expect(outputEnd("x".repeat(100_000)).shown.length).toBeLessThanOrEqual(8_000);
});

test("a turn that did not end normally says why", () => {
  expect(["end_turn", "cancelled", "interrupted", "max_tokens", "some_other"].map(endingText)).toEqual([
    "",
    "Stopped",
    "Interrupted by a restart",
    "Stopped: the model reached its token limit",
    "some other",
  ]);
});

test("the pictures of a tool are items of their own, and one without a place is left out", () => {
  const data = {
    text: "A picture of http://localhost:5400/",
    pictures: [{ place: 1000, mime: "image/jpeg" }, { mime: "x" }],
  };
  const [item] = transcriptItems([event(1, "pictures", data, 3)]);
  expect(item).toEqual({
    kind: "pictures",
    key: "pictures 1",
    turn: 3,
    text: "A picture of http://localhost:5400/",
    pictures: [{ place: 1000, mime: "image/jpeg" }],
  });
});
