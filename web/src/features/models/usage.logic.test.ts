import { expect, test } from "vitest";
import type { UsageLine } from "../../client/api";
import {
  barsOf,
  costText,
  daysUntil,
  formatCount,
  formatDollars,
  MAX_SERIES,
  OTHERS,
  readUsage,
  roundUp,
  seriesOf,
  totalsOf,
} from "./usage.logic";

const row = (day: string, model: string, cost: number | null, input = 100, priced = cost ?? 0): UsageLine => ({
  key: [day, "openai", model],
  requests: 1,
  input,
  output: 0,
  cached: 0,
  cost,
  priced,
  assumed: model === "guessed" ? 1 : 0,
  estimated: 0,
});

const uses = readUsage([
  row("2026-11-14", "gpt-5", 3),
  row("2026-11-15", "gpt-5", 1),
  row("2026-11-15", "mystery", null, 900),
]);

test("days are UTC, oldest first", () => {
  expect(daysUntil(new Date("2026-03-01T00:30:00Z"), 3)).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
});

test("a model whose price is assumed is marked", () => {
  const totals = totalsOf(readUsage([row("2026-11-15", "guessed", 2), row("2026-11-15", "gpt-5", 1)]), "cost");
  expect(totals.map((total) => [total.model, total.assumed])).toEqual([
    ["guessed", true],
    ["gpt-5", false],
  ]);
});

test("bars stack the usage of each model and mark missing prices", () => {
  const totals = totalsOf(uses, "cost");
  expect(totals.map((total) => [total.model, total.cost, total.unpriced])).toEqual([
    ["gpt-5", 4, false],
    ["mystery", 0, true],
  ]);
  const { bars, top } = barsOf(uses, ["2026-11-13", "2026-11-14", "2026-11-15"], seriesOf(totals), "cost");
  expect(top).toBe(5);
  expect(bars.map((bar) => [bar.total, bar.unpriced])).toEqual([
    [0, false],
    [3, false],
    [1, true],
  ]);
  expect(bars[1]?.segments).toEqual([{ series: 0, from: 0, to: 0.6 }]);
  const tokens = barsOf(uses, ["2026-11-15"], seriesOf(totalsOf(uses, "tokens")), "tokens");
  expect(tokens.top).toBe(1000);
  expect(tokens.bars[0]?.segments.map((segment) => segment.to)).toEqual([0.9, 1]);
});

test("many models share the last colour", () => {
  const many = readUsage(Array.from({ length: 9 }, (_, index) => row("2026-11-15", `m${index}`, 9 - index)));
  const series = seriesOf(totalsOf(many, "cost"));
  expect(series).toHaveLength(MAX_SERIES);
  expect(series.at(-1)).toBe(OTHERS);
  const { bars } = barsOf(many, ["2026-11-15"], series, "cost");
  expect(bars[0]?.segments).toHaveLength(MAX_SERIES);
  expect(bars[0]?.total).toBe(45);
});

test("numbers are rounded for people", () => {
  expect([roundUp(0), roundUp(0.03), roundUp(7), roundUp(1000), roundUp(1001)]).toEqual([1, 0.05, 10, 1000, 2000]);
  expect([formatDollars(0), formatDollars(0.004), formatDollars(12.5)]).toEqual(["$0", "$0.0040", "$12.50"]);
  expect([formatCount(12), formatCount(1234), formatCount(45_000), formatCount(2_000_000)]).toEqual([
    "12",
    "1.2 k",
    "45 k",
    "2.0 M",
  ]);
  expect(costText({ cost: 1, unpriced: true })).toBe("$1.00 + unknown");
  expect(costText({ cost: 0, unpriced: true })).toBe("price unknown");
  expect(costText({ cost: 2, unpriced: false })).toBe("$2.00");
});
