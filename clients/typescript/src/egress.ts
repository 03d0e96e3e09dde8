/** Egress rules and network requests: `home.egress`. */

import type { EgressState } from "./api.ts";
import type { Link } from "./freehold.ts";

export class Egress {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** The active rules, and the network requests that wait for an answer. */
  state(): Promise<EgressState> {
    return this.link.connection.get("/v1/egress");
  }

  /** Answer a network request that waits. A connection that waits for it continues at once. */
  answer(
    request: number,
    answer: "once" | "conversation" | "until_restart" | "always" | "never",
  ): Promise<EgressState> {
    return this.link.connection.post(`/v1/egress/requests/${request}`, { answer });
  }

  /** Allow connections to a host, such as `example.org` or `*.example.org:443`. */
  allow(pattern: string): Promise<EgressState> {
    return this.link.connection.post("/v1/egress/rules", { verdict: "allow", pattern });
  }

  /** Deny connections to a host. A deny rule wins over all allow rules. */
  deny(pattern: string): Promise<EgressState> {
    return this.link.connection.post("/v1/egress/rules", { verdict: "deny", pattern });
  }

  /** Remove a rule. Connections that it allowed are closed. */
  forget(pattern: string): Promise<EgressState> {
    return this.link.connection.delete(`/v1/egress/rules/${encodeURIComponent(pattern)}`);
  }
}
