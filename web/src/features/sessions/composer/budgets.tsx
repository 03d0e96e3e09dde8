import type { BudgetRow, BudgetsState } from "../../../client/api";
import { request } from "../../../client/http";
import { useAnswer } from "../../../ui/answers";
import { useToasts } from "../../../ui/Toasts";
import { go } from "../../shell/route";
import { useTopic } from "../../shell/live";
import { budgetWords } from "./budgets.logic";

/** Says that a budget is used up, and offers the way out. Nothing while there is money. */
export function BudgetNotice() {
  const { value, reload, put } = useAnswer<BudgetsState>("/v1/budgets");
  const toasts = useToasts();
  useTopic(
    "timeline",
    {
      event: (data) => {
        if ((data as { kind: string }).kind.startsWith("models.budget_")) reload();
      },
      resync: reload,
    },
    { durable: true },
  );
  async function lift(row: BudgetRow) {
    try {
      put(await request<BudgetsState>("/v1/budgets/lift", { method: "POST", body: { scope: row.scope, limit: row.limit } }));
      toasts.done("Agents may spend more for now");
    } catch (error) {
      toasts.failed(error);
    }
  }
  return value?.budgets
    .filter((row) => row.reached)
    .map((row) => {
      const { used, until } = budgetWords(row);
      return (
        <div key={`${row.scope} ${row.limit}`} className="composer-note" data-tone="amber" role="status">
          <p>{used}</p>
          <button type="button" className="small" onClick={() => void lift(row)}>
            Go on {until}
          </button>
          <button type="button" className="text-button" onClick={() => go("/settings/budgets")}>
            Budgets
          </button>
        </div>
      );
    });
}
