/** The kill switch: `home.killSwitch`. */

import type { StopState } from "./api.ts";
import type { Link } from "./freehold.ts";

export class KillSwitch {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** Whether the kill switch is on. */
  state(): Promise<StopState> {
    return this.link.connection.get("/v1/stop");
  }

  /** End every agent and refuse model requests until it is lifted. Needs the scope `prompt`. */
  stop(why = ""): Promise<StopState> {
    return this.link.connection.post("/v1/stop", { why });
  }

  /** Let agents work again. Needs the scope `admin`. */
  lift(): Promise<StopState> {
    return this.link.connection.post("/v1/stop/lift", {});
  }
}
