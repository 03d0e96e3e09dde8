/** The agents of this Freehold: `home.agents`. */

import type { AgentInfo, RegistryAgent } from "./api.ts";
import type { Link } from "./freehold.ts";

export class Agents {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** All known agents, installed or not. */
  list(): Promise<AgentInfo[]> {
    return this.link.connection.get("/v1/agents");
  }

  /** The agents of an ACP registry, whose index is read through egress. Nothing is added. */
  readRegistry(url: string): Promise<RegistryAgent[]> {
    return this.link.connection.post("/v1/agents/registry", { url });
  }
}
