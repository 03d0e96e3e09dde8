import { expect, test } from "vitest";
import { ago, bytes, dayOf } from "./moments";

test("a moment is told as far away as it is", () => {
  expect(ago(100, 101)).toBe("just now");
  expect(ago(100, 145)).toBe("45 s ago");
  expect(ago(0, 7200)).toBe("2 h ago");
  expect(ago(0, 90_000)).toBe("yesterday");
  expect(ago(200, 100)).toBe("just now");
});

test("days are those of the calendar", () => {
  const noon = new Date(2026, 4, 10, 12).getTime() / 1000;
  expect(dayOf(noon - 3600, noon)).toBe("Today");
  expect(dayOf(noon - 13 * 3600, noon)).toBe("Yesterday");
  expect(dayOf(noon - 72 * 3600, noon)).toContain("2026");
});

test("sizes are short", () => {
  expect([bytes(12), bytes(1500), bytes(5_368_709_120)]).toEqual(["12 B", "1.5 kB", "5.4 GB"]);
});
