import type { BudgetState, BudgetsState } from "../../../client/api";
import { request } from "../../../client/http";
import { hasKind, useResource } from "../../../data/resource";
import { go } from "../../../ui/route";
import { useToasts } from "../../../ui/Toasts";
import { budgetText } from "./budgetNotice.logic";

/** Says that a budget is used up, and offers to lift it. Draws nothing otherwise. */
export function BudgetNotice() {
  const { value, set } = useResource<BudgetsState>("/v1/budgets", {
    topic: "timeline",
    durable: true,
    concerns: (event) => hasKind(event, "models.budget_"),
    isSecondary: true,
  });
  const toasts = useToasts();
  async function lift(row: BudgetState) {
    const body = { scope: row.scope, limit: row.limit };
    try {
      set(await request<BudgetsState>("/v1/budgets/lift", { method: "POST", body }));
      toasts.done("The budget is lifted for now");
    } catch (error) {
      toasts.failed(error);
    }
  }
  return value?.budgets
    .filter((row) => row.reached)
    .map((row) => {
      const { used, until } = budgetText(row);
      return (
        <div key={`${row.scope} ${row.limit}`} className="composer-note" data-tone="amber" role="status">
          <p>{used}</p>
          <button type="button" className="small" onClick={() => void lift(row)}>
            Continue without it {until}
          </button>
          <button type="button" className="text-button" onClick={() => go("/settings/budgets")}>
            Open budgets
          </button>
        </div>
      );
    });
}
