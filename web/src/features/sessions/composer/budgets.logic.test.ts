import { expect, test } from "vitest";
import { budgetWords } from "./budgets.logic";

test("a budget says what it was and how long going on holds", () => {
  expect(budgetWords({ scope: "*", limit: "day_cost", of: 5 })).toEqual({ used: "The budget of $5 a day is used up.", until: "today" });
  expect(budgetWords({ scope: "local", limit: "month_tokens", of: 10_000 })).toEqual({ used: "The budget of 10,000 tokens for local a month is used up.", until: "this month" });
});
