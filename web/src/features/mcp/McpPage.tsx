import { useState } from "react";
import type { AddMcpServer as AddedServer, McpAnswer, McpServer, McpSignIn, McpTool } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Notice } from "../../ui/Notice";
import { visibleText } from "../../ui/visibleText";
import { AddMcpServer } from "./AddMcpServer";
import { McpToolItem } from "./McpToolItem";
import { concernsMcp, offerText } from "./mcp.logic";
import "./mcp.css";

const MCP = "/v1/mcp";
const LIVE = { topic: "timeline", durable: true, concerns: concernsMcp, delay: 150 };
const pathOf = (server: McpServer) => `${MCP}/${encodeURIComponent(server.name)}`;

/** MCP servers: what they offer, what of it agents may use, and a way to try it. */
export default function McpPage() {
  const list = useResource<McpServer[]>(MCP, LIVE);
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const problem = failure ?? list.problem;

  async function run<T>(work: () => Promise<T>): Promise<T | null> {
    setIsBusy(true);
    try {
      const found = await work();
      setFailure(null);
      return found;
    } catch (error) {
      setFailure(problemOf(error));
      return null;
    } finally {
      setIsBusy(false);
      list.reload();
    }
  }

  const add = async (added: AddedServer) => (await run(() => request(MCP, { method: "POST", body: added }))) !== null;
  const attempt = (server: McpServer) => run(() => request(`${pathOf(server)}/try`, { method: "POST" }));
  const turn = (server: McpServer) => run(() => request(pathOf(server), { method: "PATCH", body: { on: !server.on } }));
  const decide = (server: McpServer, tool: McpTool, digest: string | null) =>
    run(() => request(`${pathOf(server)}/tools/${encodeURIComponent(tool.name)}`, { method: "PUT", body: { digest } }));
  const call = (server: McpServer, tool: McpTool, given: Record<string, unknown>) =>
    run(() =>
      request<McpAnswer>(`${pathOf(server)}/call`, { method: "POST", body: { tool: tool.name, arguments: given } }),
    );

  const signIn = (server: McpServer) =>
    run(async () => {
      const { address } = await request<McpSignIn>(`${pathOf(server)}/sign-in`, { method: "POST" });
      location.assign(address);
    });
  const signOut = (server: McpServer) => run(() => request(`${pathOf(server)}/sign-in`, { method: "DELETE" }));

  return (
    <div className="column mcp">
      <header className="head">
        <h1>Tools</h1>
        <p className="quiet">MCP servers whose tools agents may use, as you have allowed them.</p>
      </header>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: () => void run(async () => {}) }} />}
      <AddMcpServer busy={isBusy} onAdd={add} />
      {list.value === null && !problem && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {list.value?.length === 0 && <p className="empty">There are no MCP servers yet.</p>}
      <ul className="mcp-list" aria-label="Servers">
        {(list.value ?? []).map((server) => (
          <li key={server.name} className="card">
            <h2 className="mcp-name">{server.name}</h2>
            <p className="quiet mcp-text">
              {server.kind === "inside" ? "in the computer" : "elsewhere"}: <code>{visibleText(server.place)}</code>
            </p>
            <p>{offerText(server)}</p>
            <div className="mcp-actions">
              <button
                type="button"
                className="small"
                disabled={isBusy}
                aria-label={`Try ${server.name}`}
                onClick={() => void attempt(server)}
              >
                Try
              </button>
              <button
                type="button"
                className="small"
                disabled={isBusy || !server.enabled}
                aria-label={`${server.on ? "Switch off" : "Switch on"} ${server.name}`}
                onClick={() => void turn(server)}
              >
                {server.on ? "Switch off" : "Switch on"}
              </button>
              {server.signed_in !== null && (
                <button
                  type="button"
                  className="small"
                  disabled={isBusy}
                  aria-label={`${server.signed_in ? "Sign out of" : "Sign in to"} ${server.name}`}
                  onClick={() => void (server.signed_in ? signOut(server) : signIn(server))}
                >
                  {server.signed_in ? "Sign out" : "Sign in"}
                </button>
              )}
            </div>
            <ul className="mcp-list" aria-label={`Tools of ${server.name}`}>
              {server.tools.map((tool) => (
                <McpToolItem
                  key={`${tool.name} ${tool.digest}`}
                  server={server.name}
                  tool={tool}
                  busy={isBusy}
                  onDecide={(one, digest) => void decide(server, one, digest)}
                  onCall={(one, given) => call(server, one, given)}
                />
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </div>
  );
}
