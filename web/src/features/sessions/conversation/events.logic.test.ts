import { expect, test } from "vitest";
import type { SessionEvent, Streaming } from "../../../client/api";
import { hear, merge, NOTHING, readPage, type Held } from "./events.logic";

const event = (seq: number, kind = "message", data: Record<string, unknown> = {}, turn: number | null = 1): SessionEvent => ({ seq, at: "", turn, kind, data });
const piece = (at: number, text: string, id = "m"): Streaming => ({ kind: "message", id, at, text });
const seqs = (held: readonly SessionEvent[]) => held.map((one) => one.seq);
const words = (held: Held) => [...held.streams.values()].map((one) => one.text);

test("an event is held once, in its place, whichever way it came", () => {
  expect(seqs(merge([event(3), event(4)], [event(5)]))).toEqual([3, 4, 5]);
  expect(seqs(merge([event(3), event(4)], [event(1), event(2)]))).toEqual([1, 2, 3, 4]);
  expect(seqs(merge([event(3), event(4)], [event(4), event(5), event(3)]))).toEqual([3, 4, 5]);
});

test("a rewind takes away its turn and those after it, and nothing that came later", () => {
  const held = [event(1, "turn.started", {}, 1), event(2, "turn.started", {}, 2), event(3, "options", {}, null)];
  const after = merge(held, [event(4, "rewound", { turn: 2 }, null), event(5, "turn.started", {}, 3)]);
  expect(seqs(after)).toEqual([1, 3, 4, 5]);
  expect(seqs(merge(after, held)), "an answer that was on its way brings nothing back").toEqual([1, 3, 4, 5]);
});

test("words come piece by piece, and once however often they are told", () => {
  const held = hear(NOTHING, [{ delta: piece(0, "Hé👍") }, { delta: piece(3, "llo") }, { delta: piece(4, "lo you") }]);
  expect(words(held)).toEqual(["Hé👍llo you"]);
  expect(held.loose).toEqual([]);
});

test("who comes in the middle, or missed a piece, asks for the whole", () => {
  const late = hear(NOTHING, [{ delta: piece(5, "later") }]);
  expect(words(late)).toEqual([]);
  expect(late.loose).toHaveLength(1);
  const whole = readPage(late, [], [piece(0, "now, later")]);
  expect(words(whole)).toEqual(["now, later"]);
  expect(whole.loose).toEqual([]);
  expect(hear(whole, [{ delta: piece(20, "x") }]).loose).toHaveLength(1);
});

test("pieces that came before the whole did are joined to it", () => {
  const late = hear(NOTHING, [{ delta: piece(5, "later") }, { delta: piece(10, " still") }]);
  expect(words(readPage(late, [], [piece(0, "now, la")]))).toEqual(["now, later still"]);
  expect(words(readPage(late, [], []))).toEqual([]);
});

test("pieces that came while the whole was asked for are not lost", () => {
  const held = hear(NOTHING, [{ delta: piece(0, "one two three") }]);
  expect(words(readPage(held, [], [piece(0, "one two")]))).toEqual(["one two three"]);
  expect(words(readPage(held, [], []))).toEqual([]);
});

test("what is kept streams no longer, and what follows under the same name does", () => {
  let held = hear(NOTHING, [{ delta: piece(0, "before") }, { event: event(1, "message", { id: "m", text: "before" }) }]);
  expect(words(held)).toEqual([]);
  expect(held.seen.get(1)).toBe("live message m 0");
  held = hear(NOTHING, [{ delta: piece(0, "before") }, { delta: piece(0, "after") }, { event: event(1, "message", { id: "m", text: "before" }) }]);
  expect(words(held)).toEqual(["after"]);
  expect(words(hear(held, [{ event: event(2, "turn.ended") }]))).toEqual([]);
});
