import type { Memory, MemoryMatches } from "../../client/api";
import { translate } from "../../language/translation";
import { countOf, formatDateTime } from "../../ui/format";

const ORIGIN_WORDS: Record<Memory["origin"]["kind"], string> = {
  owner: "you",
  program: "a program",
  agent: "an agent",
  tool: "the output of a tool",
  web: "a web page",
};

/** Where a memory comes from, in words. */
export function originText({ origin }: Memory): string {
  return translate("from {0}", ORIGIN_WORDS[origin.kind]);
}

/** What a tool or a web page said is marked: anybody may have written it. */
export function isUntrusted({ origin }: Memory): boolean {
  return origin.kind === "tool" || origin.kind === "web";
}

/** Only what the owner wrote is told to agents as the owner's word. */
export function isQuoted({ origin }: Memory): boolean {
  return origin.kind !== "owner";
}

/** A namespace in words. */
export function namespaceText(name: string): string {
  if (name === "shared") return "Shared";
  return name.startsWith("agent:")
    ? `Agent ${name.slice("agent:".length)}`
    : `Project ${name.slice("project:".length)}`;
}

/** When an agent was last given a memory. */
export function usageText({ used, last_used }: Memory): string {
  if (used === 0 || last_used === null) return "never used";
  return `used ${countOf(used, "time")}, last ${formatDateTime(Date.parse(last_used) / 1000)}`;
}

/** What the owner should know about a search; null when all is well. */
export function searchNote({ by, waiting }: MemoryMatches): string | null {
  if (by === "words") return "Meanings cannot be compared now, so only exact words were looked for.";
  return waiting === 0 ? null : `${countOf(waiting, "memory", "memories")} can be found only by exact words so far.`;
}

/** Whether an event of the timeline concerns the list. */
export function concernsMemory(event: unknown): boolean {
  const kind = (event as { kind?: unknown } | null)?.kind;
  return typeof kind === "string" && (kind.startsWith("memory.") || kind.startsWith("slot."));
}

/** Adds an older page to those that are shown, each memory once. */
export function mergePages(shown: readonly Memory[], older: readonly Memory[]): Memory[] {
  const known = new Set(shown.map((memory) => memory.id));
  return [...shown, ...older.filter((memory) => !known.has(memory.id))];
}
