import type { BudgetRow } from "../../../client/api";

/** A budget that is used up, and how long going on would hold. */
export function budgetWords(row: Pick<BudgetRow, "scope" | "limit" | "of">): { used: string; until: string } {
  const day = row.limit.startsWith("day");
  const amount = row.limit.endsWith("cost") ? `$${row.of.toLocaleString("en")}` : `${row.of.toLocaleString("en")} tokens`;
  return {
    used: `The budget of ${amount} ${row.scope === "*" ? "" : `for ${row.scope} `}${day ? "a day" : "a month"} is used up.`,
    until: day ? "today" : "this month",
  };
}
