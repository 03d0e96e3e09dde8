import { expect, test } from "vitest";
import type { SessionEvent } from "../../../client/api";
import { conversation, pieces } from "./transcript.logic";

const event = (seq: number, kind: string, data: Record<string, unknown>): SessionEvent => ({ seq, at: "", turn: 1, kind, data });

test("each thing is drawn once, in its place and its last state", () => {
  const items = conversation(
    [
      event(1, "turn.started", { prompt: { text: "hello" } }),
      event(2, "tool", { id: "t", title: "ls", status: "pending", content: [] }),
      event(3, "message", { id: "m", role: "agent", text: "hi" }),
      event(4, "tool", { id: "t", title: "ls", status: "completed", content: [{ type: "text", text: "a" }] }),
      event(5, "turn.ended", { stop_reason: "end_turn", changes: { added: 1, entry: 7 }, usage: { input: 10, output: 5, cost: null } }),
    ],
    new Map(),
  );
  expect(items.map((item) => item.kind)).toEqual(["prompt", "tool", "message", "ended"]);
  expect(items[1]).toMatchObject({ status: "completed", content: [{ text: "a" }] });
  expect(items[3]).toMatchObject({ words: "1 added · 15 tokens", entry: 7 });
});

test("what streams is shown until what it became arrives", () => {
  const streaming = new Map([["m", { kind: "message", id: "m", text: "hal" }]]);
  expect(conversation([], streaming)).toMatchObject([{ kind: "message", text: "hal", live: true }]);
  const whole = conversation([event(1, "message", { id: "m", role: "agent", text: "hallo" })], streaming);
  expect(whole).toMatchObject([{ text: "hallo", live: false }]);
});

test("code keeps its columns", () => {
  expect(pieces("see\n```py\n  x = 1\n```\ndone")).toEqual([
    { code: false, text: "see" },
    { code: true, text: "  x = 1" },
    { code: false, text: "done" },
  ]);
});
