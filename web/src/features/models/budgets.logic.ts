import type { BudgetRow, SetBudget } from "../../client/api";
import { dollars, short } from "./usage.logic";

export const ALL = "*";
export const LIMITS = ["day_cost", "month_cost", "day_tokens", "month_tokens"] as const;
export type Limit = (typeof LIMITS)[number];

export const LABELS: Record<Limit, string> = {
  day_cost: "Dollars a day",
  month_cost: "Dollars a month",
  day_tokens: "Tokens a day",
  month_tokens: "Tokens a month",
};

export const scopeWords = (scope: string): string => (scope === ALL ? "All models together" : scope);

const amount = (value: number, limit: Limit): string => (limit.endsWith("cost") ? dollars(value) : `${short(value)} tokens`);

export interface Standing {
  share: number;
  tone: "leaf" | "amber" | "alarm" | "quiet";
  words: string;
  /** What else the owner must know. */
  note: string;
  canLift: boolean;
}

/** How a budget stands: fine, nearly used up (from 80 %), used up, or resting. */
export function standingOf(row: BudgetRow): Standing {
  const share = row.of > 0 ? row.spent / row.of : 1;
  const period = row.limit.startsWith("day") ? "today" : "this month";
  const full = share >= 1 || row.reached;
  const unpriced = row.unpriced > 0 && row.limit.endsWith("cost");
  const rest = row.limit.startsWith("day") ? "day" : "month";
  return {
    share: Math.min(1, share),
    tone: row.lifted ? "quiet" : full ? "alarm" : share >= 0.8 ? "amber" : "leaf",
    words: `${amount(row.spent, row.limit)} of ${amount(row.of, row.limit)} ${period}`,
    note: [
      row.lifted ? `Lifted until the ${rest} is over.` : full ? "Reached: questions are refused." : share >= 0.8 ? "More than 80 % is used." : "",
      unpriced ? `${row.unpriced === 1 ? "One question" : `${row.unpriced} questions`} of unknown price count as nothing.` : "",
    ]
      .filter((part) => part !== "")
      .join(" "),
    canLift: full && !row.lifted,
  };
}

export type Draft = Record<Limit, string>;

/** What is in force for a scope, as the fields of the form show it. */
export function draftOf(rows: readonly BudgetRow[], scope: string): Draft {
  const found = (limit: Limit) => rows.find((row) => row.scope === scope && row.limit === limit)?.of;
  return Object.fromEntries(LIMITS.map((limit) => [limit, String(found(limit) ?? "")])) as Draft;
}

/** What the form asks for; a sentence when it cannot be asked. */
export function readDraft(scope: string, draft: Draft): SetBudget | string {
  const body: SetBudget = { scope };
  for (const limit of LIMITS) {
    const text = draft[limit].trim();
    if (text === "") continue;
    const value = Number(text);
    const whole = limit.endsWith("tokens");
    if (!(value > 0) || !Number.isFinite(value) || (whole && !Number.isInteger(value))) {
      return `${LABELS[limit]}: ${whole ? "a whole number" : "a number"} above zero, or nothing for no bound.`;
    }
    body[limit] = value;
  }
  return body;
}
