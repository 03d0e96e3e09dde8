import { expect, test } from "vitest";
import type { SessionEvent, StreamingText } from "../../../client/api";
import { applyMessages, EMPTY_LOG, mergeEvents, type SessionLog, withPage } from "./events.logic";

const event = (
  seq: number,
  kind = "message",
  data: Record<string, unknown> = {},
  turn: number | null = 1,
): SessionEvent => ({ seq, at: "", turn, kind, data });
const piece = (at: number, text: string, id = "m"): StreamingText => ({ kind: "message", id, at, text });
const seqs = (held: readonly SessionEvent[]) => held.map((one) => one.seq);
const words = (held: SessionLog) => [...held.streams.values()].map((one) => one.text);

test("an event is kept once and in its place, in whatever order events arrive", () => {
  expect(seqs(mergeEvents([event(3), event(4)], [event(5)]))).toEqual([3, 4, 5]);
  expect(seqs(mergeEvents([event(3), event(4)], [event(1), event(2)]))).toEqual([1, 2, 3, 4]);
  expect(seqs(mergeEvents([event(3), event(4)], [event(4), event(5), event(3)]))).toEqual([3, 4, 5]);
});

test("a page that brings nothing new changes nothing, and what is held stays the same object", () => {
  const log = withPage(EMPTY_LOG, [event(3), event(4)], []);
  expect(withPage(log, [event(3), event(4)], [])).toBe(log);
  const more = withPage(log, [event(4), event(5)], []);
  expect(seqs(more.events)).toEqual([3, 4, 5]);
  expect(more.events[1]).toBe(log.events[1]);
  const rewound = mergeEvents(log.events, [event(5, "rewound", { turn: 9 }, null)]);
  expect(mergeEvents(rewound, [event(4, "message", {}, 9), event(5, "rewound", { turn: 9 }, null)])).toBe(rewound);
  const writing = applyMessages(log, [{ delta: piece(0, "words") }]);
  expect(words(withPage(writing, [event(4)], [])), "a text that nobody writes any more").toEqual([]);
});

test("a rewind removes its turn and those after it, but nothing that came later", () => {
  const held = [event(1, "turn.started", {}, 1), event(2, "turn.started", {}, 2), event(3, "options", {}, null)];
  const after = mergeEvents(held, [event(4, "rewound", { turn: 2 }, null), event(5, "turn.started", {}, 3)]);
  expect(seqs(after)).toEqual([1, 3, 4, 5]);
  expect(seqs(mergeEvents(after, held)), "a late page brings nothing back").toEqual([1, 3, 4, 5]);
});

test("pieces of text are joined, and a repeated piece counts once", () => {
  const held = applyMessages(EMPTY_LOG, [
    { delta: piece(0, "Hé👍") },
    { delta: piece(3, "llo") },
    { delta: piece(4, "lo you") },
  ]);
  expect(words(held)).toEqual(["Hé👍llo you"]);
  expect(held.unmatched).toEqual([]);
});

test("after a missed piece the whole text is fetched", () => {
  const late = applyMessages(EMPTY_LOG, [{ delta: piece(5, "later") }]);
  expect(words(late)).toEqual([]);
  expect(late.unmatched).toHaveLength(1);
  const whole = withPage(late, [], [piece(0, "now, later")]);
  expect(words(whole)).toEqual(["now, later"]);
  expect(whole.unmatched).toEqual([]);
  expect(applyMessages(whole, [{ delta: piece(20, "x") }]).unmatched).toHaveLength(1);
});

test("pieces that arrived before the whole text are joined to it", () => {
  const late = applyMessages(EMPTY_LOG, [{ delta: piece(5, "later") }, { delta: piece(10, " still") }]);
  expect(words(withPage(late, [], [piece(0, "now, la")]))).toEqual(["now, later still"]);
  expect(words(withPage(late, [], []))).toEqual([]);
});

test("pieces that arrived while the whole text was fetched are not lost", () => {
  const held = applyMessages(EMPTY_LOG, [{ delta: piece(0, "one two three") }]);
  expect(words(withPage(held, [], [piece(0, "one two")]))).toEqual(["one two three"]);
  expect(words(withPage(held, [], []))).toEqual([]);
});

test("a finished message is no longer streamed, and the next one under the same id is", () => {
  let held = applyMessages(EMPTY_LOG, [
    { delta: piece(0, "before") },
    { event: event(1, "message", { id: "m", text: "before" }) },
  ]);
  expect(words(held)).toEqual([]);
  expect(held.streamedKeys.get(1)).toBe("live message m 0");
  held = applyMessages(EMPTY_LOG, [
    { delta: piece(0, "before") },
    { delta: piece(0, "after") },
    { event: event(1, "message", { id: "m", text: "before" }) },
  ]);
  expect(words(held)).toEqual(["after"]);
  expect(words(applyMessages(held, [{ event: event(2, "turn.ended") }]))).toEqual([]);
});
