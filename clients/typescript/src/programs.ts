/** The programs that the keeper runs: `home.programs`. */

import type { ProgramsState, RestartStarted, Retention, RetentionRule } from "./api.ts";
import type { Link } from "./freehold.ts";

export class Programs {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** All programs with restarts and memory, the ports, and the use of the computer. */
  state(): Promise<ProgramsState> {
    return this.link.connection.get("/v1/programs");
  }

  /** Restart a program. Needs the scope `admin`. */
  restart(name: string): Promise<RestartStarted> {
    return this.link.connection.post(`/v1/programs/${encodeURIComponent(name)}/restart`, {});
  }

  /** What they keep, for how long and where. Needs the scope `admin`. */
  async retention(): Promise<RetentionRule[]> {
    return (await this.link.connection.get<Retention>("/v1/retention")).rules;
  }
}
