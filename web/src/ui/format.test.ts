import { expect, test } from "vitest";
import { countOf, formatAge, formatBytes, formatDay, shorten } from "./format";

test("an age is rounded to its unit", () => {
  expect(formatAge(100, 101)).toBe("just now");
  expect(formatAge(100, 145)).toBe("45 s ago");
  expect(formatAge(0, 7200)).toBe("2 h ago");
  expect(formatAge(0, 90_000)).toBe("yesterday");
  expect(formatAge(200, 100)).toBe("just now");
});

test("days are calendar days", () => {
  const noon = new Date(2026, 4, 10, 12).getTime() / 1000;
  expect(formatDay(noon - 3600, noon)).toBe("Today");
  expect(formatDay(noon - 13 * 3600, noon)).toBe("Yesterday");
  expect(formatDay(noon - 72 * 3600, noon)).toContain("2026");
});

test("sizes are short", () => {
  expect([formatBytes(12), formatBytes(1500), formatBytes(5_368_709_120)]).toEqual(["12 B", "1.5 kB", "5.4 GB"]);
});

test("counts have their plural, and long texts an end", () => {
  expect([countOf(1, "file"), countOf(2, "file"), countOf(1200, "entry", "entries")]).toEqual([
    "1 file",
    "2 files",
    "1,200 entries",
  ]);
  expect([shorten("abcd", 4), shorten("abcde", 4)]).toEqual(["abcd", "abc…"]);
});
