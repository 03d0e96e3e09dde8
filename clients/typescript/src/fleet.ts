/** Computers on other machines: `home.fleet`. */

import type { ChangedNode, Fleet as State } from "./api.ts";
import type { Link } from "./freehold.ts";

export class Fleet {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** The nodes, the computers on them, and what waits for room and why. */
  get(): Promise<State> {
    return this.link.connection.get("/v1/fleet");
  }

  /** Give a node no more computers, or give it computers again. Needs the scope `admin`. */
  drain(node: string, { draining = true }: { draining?: boolean } = {}): Promise<ChangedNode> {
    return this.link.connection.patch(nodeAddress(node), { draining });
  }

  /** Remove a node; with `lose` also one that has computers, which are lost. Needs the scope `admin`. */
  remove(node: string, { lose = false }: { lose?: boolean } = {}): Promise<ChangedNode> {
    return this.link.connection.delete(nodeAddress(node) + (lose ? "?lose=true" : ""));
  }
}

function nodeAddress(node: string): string {
  return `/v1/fleet/nodes/${encodeURIComponent(node)}`;
}
