/** What models were used and cost: `home.usage`. */

import type { UsageReport } from "./api.ts";
import type { Link } from "./freehold.ts";

export class Usage {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** Usage and cost of models, the newest first. `since` is a day: `2026-11-19`. */
  report(
    by: UsageReport["by"] = "day",
    { since = "", limit = 100 }: { since?: string; limit?: number } = {},
  ): Promise<UsageReport> {
    return this.link.connection.get("/v1/usage", { by, since, limit });
  }
}
