import { expect, test } from "vitest";
import type { BudgetRow } from "../../client/api";
import { draftOf, readDraft, scopeWords, standingOf } from "./budgets.logic";

const budget: BudgetRow = { scope: "*", limit: "day_cost", period: "2026-11-15", of: 5, spent: 1, unpriced: 0, lifted: false, reached: false };

test("a budget warns from 80 %, and is lifted only when it is used up", () => {
  expect(standingOf(budget)).toMatchObject({ tone: "leaf", words: "$1.00 of $5.00 today", note: "", canLift: false });
  expect(standingOf({ ...budget, spent: 4 })).toMatchObject({ tone: "amber", note: "More than 80 % is used." });
  expect(standingOf({ ...budget, spent: 6 })).toMatchObject({ tone: "alarm", share: 1, canLift: true });
  expect(standingOf({ ...budget, reached: true })).toMatchObject({ tone: "alarm", canLift: true });
  expect(standingOf({ ...budget, spent: 6, lifted: true })).toMatchObject({ tone: "quiet", note: "Lifted until the day is over.", canLift: false });
  expect(standingOf({ ...budget, unpriced: 2 }).note).toContain("2 questions of unknown price");
  expect(standingOf({ ...budget, limit: "month_tokens", of: 2e6, spent: 5e5 }).words).toBe("500 k tokens of 2.0 M tokens this month");
});

test("the form shows what is in force and asks only for what can be", () => {
  const draft = draftOf([budget, { ...budget, scope: "openai", of: 9 }], "*");
  expect(draft).toEqual({ day_cost: "5", month_cost: "", day_tokens: "", month_tokens: "" });
  expect(readDraft("*", { ...draft, month_tokens: "1000" })).toEqual({ scope: "*", day_cost: 5, month_tokens: 1000 });
  expect(readDraft("*", { ...draft, day_cost: "0" })).toContain("Dollars a day");
  expect(readDraft("*", { ...draft, day_tokens: "1.5" })).toContain("whole number");
  expect(readDraft("*", { ...draft, day_cost: "" })).toEqual({ scope: "*" });
  expect(scopeWords("*")).toBe("All models together");
});
