import { expect, test } from "vitest";
import type { UsageRow } from "../../client/api";
import { barsOf, costWords, daysUntil, dollars, MOST_SERIES, OTHERS, readUses, roundUp, seriesOf, short, totalsOf } from "./usage.logic";

const row = (day: string, model: string, cost: number | null, input = 100, priced = cost ?? 0): UsageRow => ({
  key: [day, "openai", model],
  requests: 1,
  input,
  output: 0,
  cached: 0,
  cost,
  priced,
});

const uses = readUses([row("2026-11-14", "gpt-5", 3), row("2026-11-15", "gpt-5", 1), row("2026-11-15", "mystery", null, 900)]);

test("days are UTC, oldest first", () => {
  expect(daysUntil(new Date("2026-03-01T00:30:00Z"), 3)).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
});

test("bars stack what each model used, and say where a price is missing", () => {
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
  const many = readUses(Array.from({ length: 9 }, (_, index) => row("2026-11-15", `m${index}`, 9 - index)));
  const series = seriesOf(totalsOf(many, "cost"));
  expect(series).toHaveLength(MOST_SERIES);
  expect(series.at(-1)).toBe(OTHERS);
  const { bars } = barsOf(many, ["2026-11-15"], series, "cost");
  expect(bars[0]?.segments).toHaveLength(MOST_SERIES);
  expect(bars[0]?.total).toBe(45);
});

test("numbers are those of a person", () => {
  expect([roundUp(0), roundUp(0.03), roundUp(7), roundUp(1000), roundUp(1001)]).toEqual([1, 0.05, 10, 1000, 2000]);
  expect([dollars(0), dollars(0.004), dollars(12.5)]).toEqual(["$0", "$0.0040", "$12.50"]);
  expect([short(12), short(1234), short(45_000), short(2_000_000)]).toEqual(["12", "1.2 k", "45 k", "2.0 M"]);
  expect(costWords({ cost: 1, unpriced: true })).toBe("$1.00 and unknown");
  expect(costWords({ cost: 0, unpriced: true })).toBe("price unknown");
  expect(costWords({ cost: 2, unpriced: false })).toBe("$2.00");
});
