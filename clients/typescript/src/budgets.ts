/** The limits of what models may cost: `home.budgets`. */

import type { BudgetState, BudgetsState } from "./api.ts";
import type { Link } from "./freehold.ts";

/** In US dollars and tokens. */
export interface BudgetOptions {
  dayCost?: number;
  monthCost?: number;
  dayTokens?: number;
  monthTokens?: number;
}

/** `scope` is a provider, or `*` for all. The token needs the scope `admin`. */
export class Budgets {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** Every limit in force with the spending so far. */
  async list(): Promise<BudgetState[]> {
    return (await this.link.connection.get<BudgetsState>("/v1/budgets")).budgets;
  }

  /** Set the limits of a provider or of all. Without any, those of the manifest apply again. */
  async set(
    scope = "*",
    { dayCost, monthCost, dayTokens, monthTokens }: BudgetOptions = {},
  ): Promise<BudgetState[]> {
    const limits = { day_cost: dayCost, month_cost: monthCost, day_tokens: dayTokens, month_tokens: monthTokens };
    return (await this.link.connection.put<BudgetsState>("/v1/budgets", { scope, ...limits })).budgets;
  }

  /** Ignore a limit until its day or month is over. */
  async lift(scope: string, limit: BudgetState["limit"]): Promise<BudgetState[]> {
    return (await this.link.connection.post<BudgetsState>("/v1/budgets/lift", { scope, limit })).budgets;
  }
}
