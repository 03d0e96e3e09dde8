import type { UsageLine } from "../../client/api";
import { LANGUAGE } from "../../language/translation";

export type Measure = "cost" | "tokens";

/** The usage of one model on one day. `cost` is the known part; `unpriced` tells that there was more. */
export interface ModelUse {
  day: string;
  model: string;
  requests: number;
  input: number;
  output: number;
  cost: number;
  unpriced: boolean;
  /** Some of the cost is that of the dearest model of the provider, because the price is not in the table. */
  assumed: boolean;
}

export const MAX_SERIES = 6;
export const OTHERS = "other models";

/** Rows of `GET /v1/usage?by=day_model`. */
export function readUsage(rows: readonly UsageLine[]): ModelUse[] {
  return rows.map((row) => ({
    day: row.key[0] ?? "",
    model: row.key[2] || "unnamed",
    requests: row.requests,
    input: row.input,
    output: row.output,
    cost: row.cost ?? row.priced,
    unpriced: row.cost === null,
    assumed: row.assumed > 0,
  }));
}

const amountOf = (use: ModelUse, measure: Measure): number => (measure === "cost" ? use.cost : use.input + use.output);

/** The last `count` days until `today` in UTC, oldest first. */
export function daysUntil(today: Date, count: number): string[] {
  return Array.from({ length: count }, (_, index) =>
    new Date(today.getTime() - (count - 1 - index) * 86_400_000).toISOString().slice(0, 10),
  );
}

export interface ModelTotal {
  model: string;
  requests: number;
  input: number;
  output: number;
  cost: number;
  unpriced: boolean;
  /** Some of the cost is that of the dearest model of the provider, because the price is not in the table. */
  assumed: boolean;
}

/** The usage of each model, the highest first. */
export function totalsOf(uses: readonly ModelUse[], measure: Measure): ModelTotal[] {
  const found = new Map<string, ModelTotal>();
  for (const use of uses) {
    const total = found.get(use.model) ?? {
      model: use.model,
      requests: 0,
      input: 0,
      output: 0,
      cost: 0,
      unpriced: false,
      assumed: false,
    };
    total.requests += use.requests;
    total.input += use.input;
    total.output += use.output;
    total.cost += use.cost;
    total.unpriced ||= use.unpriced;
    total.assumed ||= use.assumed;
    found.set(use.model, total);
  }
  const amount = (total: ModelTotal) => (measure === "cost" ? total.cost : total.input + total.output);
  return [...found.values()].sort(
    (a, b) => amount(b) - amount(a) || b.requests - a.requests || a.model.localeCompare(b.model),
  );
}

/** The models with their own colour. The others share one. */
export function seriesOf(totals: readonly ModelTotal[]): string[] {
  const names = totals.map((total) => total.model);
  return names.length <= MAX_SERIES ? names : [...names.slice(0, MAX_SERIES - 1), OTHERS];
}

export interface Segment {
  series: number;
  /** Fractions of the chart's height, from the bottom. */
  from: number;
  to: number;
}

export interface Bar {
  day: string;
  total: number;
  unpriced: boolean;
  segments: Segment[];
}

/** One bar per day, with its parts in the order of the series. */
export function barsOf(
  uses: readonly ModelUse[],
  days: readonly string[],
  series: readonly string[],
  measure: Measure,
): { bars: Bar[]; top: number } {
  const parts = days.map((day) => {
    const amounts = series.map(() => 0);
    let unpriced = false;
    for (const use of uses) {
      if (use.day !== day) continue;
      const at = series.indexOf(use.model);
      const place = at >= 0 ? at : series.length - 1;
      amounts[place] = (amounts[place] ?? 0) + amountOf(use, measure);
      unpriced ||= use.unpriced;
    }
    return { day, amounts, unpriced, total: amounts.reduce((sum, amount) => sum + amount, 0) };
  });
  const top = roundUp(Math.max(0, ...parts.map((part) => part.total)));
  const bars = parts.map(({ day, amounts, unpriced, total }) => {
    let from = 0;
    const segments = amounts.flatMap((amount, index) => {
      if (amount <= 0) return [];
      const segment = { series: index, from, to: from + amount / top };
      from = segment.to;
      return [segment];
    });
    return { day, total, unpriced, segments };
  });
  return { bars, top };
}

/** The next round number, for the axis. */
export function roundUp(value: number): number {
  if (value <= 0) return 1;
  const step = 10 ** Math.floor(Math.log10(value));
  const found = [1, 2, 5, 10].find((factor) => factor * step >= value * 0.999999) ?? 10;
  return found * step;
}

export function formatDollars(value: number): string {
  if (value === 0) return "$0";
  if (value < 0.01) return `$${value.toFixed(4)}`;
  return `$${value.toLocaleString(LANGUAGE, { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

/** 1.2 k, 3.4 M. */
export function formatCount(count: number): string {
  if (count < 1000) return String(count);
  const [value, unit] = count < 1e6 ? [count / 1e3, "k"] : count < 1e9 ? [count / 1e6, "M"] : [count / 1e9, "G"];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

export const formatAmount = (value: number, measure: Measure): string =>
  measure === "cost" ? formatDollars(value) : formatCount(value);

/** A cost that is known, partly known or unknown. */
export function costText(total: Pick<ModelTotal, "cost" | "unpriced">): string {
  if (!total.unpriced) return formatDollars(total.cost);
  return total.cost > 0 ? `${formatDollars(total.cost)} + unknown` : "price unknown";
}

export function formatDate(day: string): string {
  return new Date(`${day}T00:00:00Z`).toLocaleDateString(undefined, {
    day: "numeric",
    month: "short",
    timeZone: "UTC",
  });
}
