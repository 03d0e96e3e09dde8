import { expect, test } from "vitest";
import type { BudgetState } from "../../client/api";
import { budgetStatus, draftOf, parseDraft, scopeText } from "./budgets.logic";

const budget: BudgetState = {
  scope: "*",
  limit: "day_cost",
  period: "2026-11-15",
  of: 5,
  spent: 1,
  unpriced: 0,
  assumed: 0,
  lifted: false,
  reached: false,
};

test("a budget warns from 80 %, and can be lifted when it is used up", () => {
  expect(budgetStatus(budget)).toMatchObject({ tone: "leaf", text: "$1.00 of $5.00 today", note: "", canLift: false });
  expect(budgetStatus({ ...budget, spent: 4 })).toMatchObject({ tone: "amber", note: "More than 80 % is used." });
  expect(budgetStatus({ ...budget, spent: 6 })).toMatchObject({ tone: "alarm", share: 1, canLift: true });
  expect(budgetStatus({ ...budget, reached: true })).toMatchObject({ tone: "alarm", canLift: true });
  expect(budgetStatus({ ...budget, spent: 6, lifted: true })).toMatchObject({
    tone: "quiet",
    note: "Lifted until the end of the day.",
    canLift: false,
  });
  expect(budgetStatus({ ...budget, unpriced: 2 }).note).toContain("2 requests of unknown price");
  expect(budgetStatus({ ...budget, assumed: 1 }).note).toBe(
    "1 request without a price counts as the dearest of the provider.",
  );
  expect(budgetStatus({ ...budget, limit: "month_tokens", of: 2e6, spent: 5e5 }).text).toBe(
    "500 k tokens of 2.0 M tokens this month",
  );
});

test("the form shows the limits and refuses invalid ones", () => {
  const draft = draftOf([budget, { ...budget, scope: "openai", of: 9 }], "*");
  expect(draft).toEqual({ day_cost: "5", month_cost: "", day_tokens: "", month_tokens: "" });
  expect(parseDraft("*", { ...draft, month_tokens: "1000" })).toEqual({ scope: "*", day_cost: 5, month_tokens: 1000 });
  expect(parseDraft("*", { ...draft, day_cost: "0" })).toContain("Dollars per day");
  expect(parseDraft("*", { ...draft, day_tokens: "1.5" })).toContain("whole number");
  expect(parseDraft("*", { ...draft, day_cost: "" })).toEqual({ scope: "*" });
  expect(scopeText("*")).toBe("All models");
});
