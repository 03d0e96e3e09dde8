import type { BudgetState } from "../../../client/api";
import { LANGUAGE } from "../../../language/translation";
import { countOf } from "../../../ui/format";

/** That a budget is used up, and the period for which it can be lifted. */
export function budgetText(row: Pick<BudgetState, "scope" | "limit" | "of">): { used: string; until: string } {
  const day = row.limit.startsWith("day");
  const amount = row.limit.endsWith("cost") ? `$${row.of.toLocaleString(LANGUAGE)}` : countOf(row.of, "token");
  return {
    used: `The budget of ${amount} per ${day ? "day" : "month"}${row.scope === "*" ? "" : ` for ${row.scope}`} is used up.`,
    until: day ? "today" : "this month",
  };
}
