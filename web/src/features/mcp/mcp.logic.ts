import type { McpServer, McpTool } from "../../client/api";
import { countOf } from "../../ui/format";

/** What agents may do with a tool, in a word. */
export function stateOf({ allowed, changed }: McpTool): "allowed" | "changed" | "not allowed" {
  return changed ? "changed" : allowed ? "allowed" : "not allowed";
}

/** What agents are offered of a server, in a sentence. */
export function offerText({ on, asks, tools }: McpServer): string {
  if (!on) return "Switched off: agents are offered none of its tools.";
  if (tools.length === 0) return "Its tools were not seen yet.";
  const allowed = tools.filter((tool) => tool.allowed).length;
  if (allowed === 0) return `Agents are offered none of its ${countOf(tools.length, "tool")}.`;
  const asked = asks ? "You are asked before each call." : "You are not asked before a call.";
  return `Agents are offered ${allowed} of ${countOf(tools.length, "tool")}. ${asked}`;
}

/** The arguments that were typed, or null when they are not a JSON object. */
export function readArguments(text: string): Record<string, unknown> | null {
  try {
    const found: unknown = JSON.parse(text.trim() === "" ? "{}" : text);
    return typeof found === "object" && found !== null && !Array.isArray(found)
      ? (found as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

/** Timeline events after which the list is fetched again. */
export function concernsMcp(event: unknown): boolean {
  const kind = (event as { kind?: unknown } | null)?.kind;
  return typeof kind === "string" && kind.startsWith("mcp.");
}
