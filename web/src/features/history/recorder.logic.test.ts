import { expect, test } from "vitest";
import { factsOf, isIn, together, wordsOf, type Recorded } from "./recorder.logic";

const event = (seq: number, kind: string, data: Record<string, unknown> = {}): Recorded => ({ seq, at: "", kind, who: "owner", data });

test("an event is told in words", () => {
  expect(wordsOf(event(1, "identity.token_created"))).toBe("Token created");
  expect(wordsOf(event(1, "program.started"))).toBe("Program started");
  expect(factsOf(event(1, "x.y", { program: "gateway", pid: 4, why: null }))).toBe("program gateway · pid 4");
});

test("events are filtered by what they are about", () => {
  expect(isIn(event(1, "egress.connection_refused"), "network")).toBe(true);
  expect(isIn(event(1, "egress.connection_refused"), "files")).toBe(false);
  expect(isIn(event(1, "anything.at_all"), "all")).toBe(true);
});

test("what comes live and what was read meet without doubles", () => {
  expect(together([event(3, "a"), event(2, "b")], [event(4, "c"), event(3, "a")]).map((one) => one.seq)).toEqual([4, 3, 2]);
  expect(together([event(1, "a")], [event(2, "b")], 1).map((one) => one.seq)).toEqual([2]);
});
