import type { BudgetState, SetBudget } from "../../client/api";
import { countOf } from "../../ui/format";
import { formatCount, formatDollars } from "./usage.logic";

export const ALL = "*";
export const LIMITS = ["day_cost", "month_cost", "day_tokens", "month_tokens"] as const;
export type Limit = (typeof LIMITS)[number];

export const LABELS: Record<Limit, string> = {
  day_cost: "Dollars per day",
  month_cost: "Dollars per month",
  day_tokens: "Tokens per day",
  month_tokens: "Tokens per month",
};

export const scopeText = (scope: string): string => (scope === ALL ? "All models" : scope);

const amount = (value: number, limit: Limit): string =>
  limit.endsWith("cost") ? formatDollars(value) : `${formatCount(value)} tokens`;

export interface BudgetStatus {
  share: number;
  tone: "leaf" | "amber" | "alarm" | "quiet";
  text: string;
  /** A warning, or other facts. */
  note: string;
  canLift: boolean;
}

/** The status of a budget. From 80 % on it warns. */
export function budgetStatus(row: BudgetState): BudgetStatus {
  const share = row.of > 0 ? row.spent / row.of : 1;
  const period = row.limit.startsWith("day") ? "today" : "this month";
  const full = share >= 1 || row.reached;
  const unpriced = row.unpriced > 0 && row.limit.endsWith("cost");
  const rest = row.limit.startsWith("day") ? "day" : "month";
  return {
    share: Math.min(1, share),
    tone: row.lifted ? "quiet" : full ? "alarm" : share >= 0.8 ? "amber" : "leaf",
    text: `${amount(row.spent, row.limit)} of ${amount(row.of, row.limit)} ${period}`,
    note: [
      row.lifted
        ? `Lifted until the end of the ${rest}.`
        : full
          ? "Used up. Model requests are refused."
          : share >= 0.8
            ? "More than 80 % is used."
            : "",
      unpriced
        ? `${countOf(row.unpriced, "request")} of unknown price ${row.unpriced === 1 ? "is" : "are"} not counted.`
        : "",
      row.assumed > 0 && row.limit.endsWith("cost")
        ? `${countOf(row.assumed, "request")} without a price ${row.assumed === 1 ? "counts" : "count"} as the dearest of the provider.`
        : "",
    ]
      .filter((part) => part !== "")
      .join(" "),
    canLift: full && !row.lifted,
  };
}

export type Draft = Record<Limit, string>;

/** The limits of a scope as the fields of the form. */
export function draftOf(rows: readonly BudgetState[], scope: string): Draft {
  const found = (limit: Limit) => rows.find((row) => row.scope === scope && row.limit === limit)?.of;
  return Object.fromEntries(LIMITS.map((limit) => [limit, String(found(limit) ?? "")])) as Draft;
}

/** The request that the form makes, or a sentence that says what is wrong. */
export function parseDraft(scope: string, draft: Draft): SetBudget | string {
  const body: SetBudget = { scope };
  for (const limit of LIMITS) {
    const text = draft[limit].trim();
    if (text === "") continue;
    const value = Number(text);
    const whole = limit.endsWith("tokens");
    if (!(value > 0) || !Number.isFinite(value) || (whole && !Number.isInteger(value))) {
      return `${LABELS[limit]}: ${whole ? "a whole number" : "a number"} above zero, or empty for no limit.`;
    }
    body[limit] = value;
  }
  return body;
}
