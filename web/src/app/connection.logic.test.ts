import { expect, test } from "vitest";
import { outageOf } from "./connection.logic";

const facts = { isOnline: true, isOnThisMachine: false, brokenFor: 0, unansweredFor: 0 };

test("no connection of the device is said as what it is, whatever the socket believes", () => {
  expect(outageOf("live", { ...facts, isOnline: false })).toBe("offline");
  expect(outageOf("reconnecting", { ...facts, isOnline: false, brokenFor: 9_000 })).toBe("offline");
});

test("a device without a network still uses the Freehold that answers on it", () => {
  const alone = { ...facts, isOnline: false, isOnThisMachine: true };
  expect(outageOf("live", alone)).toBe("none");
  expect(outageOf("live", { ...alone, unansweredFor: 2_600 })).toBe("offline");
  expect(outageOf("reconnecting", alone)).toBe("offline");
});

test("a ping without an answer is said, and a short one is not", () => {
  expect(outageOf("live", { ...facts, unansweredFor: 1_000 })).toBe("none");
  expect(outageOf("live", { ...facts, unansweredFor: 2_600 })).toBe("silent");
});

test("a break is told after a moment, and differently when it lasts", () => {
  expect([100, 1_000, 6_000].map((brokenFor) => outageOf("reconnecting", { ...facts, brokenFor }))).toEqual([
    "none",
    "short",
    "long",
  ]);
});
