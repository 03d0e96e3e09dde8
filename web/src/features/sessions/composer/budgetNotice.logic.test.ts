import { expect, test } from "vitest";
import { budgetText } from "./budgetNotice.logic";

test("a used budget says its amount and its period", () => {
  expect(budgetText({ scope: "*", limit: "day_cost", of: 5 })).toEqual({
    used: "The budget of $5 per day is used up.",
    until: "today",
  });
  expect(budgetText({ scope: "local", limit: "month_tokens", of: 10_000 })).toEqual({
    used: "The budget of 10,000 tokens per month for local is used up.",
    until: "this month",
  });
});
