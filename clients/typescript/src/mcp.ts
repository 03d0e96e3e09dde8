/** MCP servers: `home.mcp`. */

import type { McpAnswer, McpServer, McpSignIn } from "./api.ts";
import type { Link } from "./freehold.ts";

export class Mcp {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** The servers of the manifest, with their tools as they were seen last. */
  list(): Promise<McpServer[]> {
    return this.link.connection.get("/v1/mcp");
  }

  /** Connect to a server now, and read its tools. */
  tryServer(name: string): Promise<McpServer> {
    return this.link.connection.post(`${addressOf(name)}/try`, {});
  }

  /** Call a tool on your own behalf. */
  call(name: string, tool: string, given: Record<string, unknown>): Promise<McpAnswer> {
    return this.link.connection.post(`${addressOf(name)}/call`, { tool, arguments: given });
  }

  /** The address at which you sign in to a remote server. Open it in a browser. */
  async beginSignIn(name: string): Promise<string> {
    return (await this.link.connection.post<McpSignIn>(`${addressOf(name)}/sign-in`, {})).address;
  }

  /** Forget the tokens of a remote server. */
  signOut(name: string): Promise<McpServer> {
    return this.link.connection.delete(`${addressOf(name)}/sign-in`);
  }

  /** Offer the tools of a server to agents, or not. */
  switch(name: string, { on }: { on: boolean }): Promise<McpServer> {
    return this.link.connection.patch(addressOf(name), { on });
  }

  /** Allow a tool as it was shown, or with null no longer. */
  decide(name: string, tool: string, digest: string | null): Promise<McpServer> {
    return this.link.connection.put(`${addressOf(name)}/tools/${encodeURIComponent(tool)}`, { digest });
  }
}

function addressOf(server: string): string {
  return `/v1/mcp/${encodeURIComponent(server)}`;
}
