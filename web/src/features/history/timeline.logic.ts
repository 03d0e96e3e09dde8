import type { HistoryEntry } from "../../client/api";
import { secondsOf } from "../../ui/format";
import { describeEvent, type RecordedEvent } from "./eventText.logic";
import { actorText, entryActor, entryTitle } from "./history.logic";

export type Group = "files" | "decisions" | "work" | "network" | "access" | "system";

/** The groups of the list and their kinds of event. All other kinds belong to `system`. */
export const GROUPS: readonly { name: Group; title: string; kinds: readonly string[] }[] = [
  { name: "files", title: "Files", kinds: ["history.*"] },
  {
    name: "decisions",
    title: "Decisions",
    kinds: [
      "approval.*",
      "policy.*",
      "egress.question_asked",
      "egress.question_answered",
      "egress.rule_added",
      "egress.rule_removed",
      "models.stopped",
      "models.resumed",
    ],
  },
  { name: "work", title: "Agents", kinds: ["session.*", "turn.*", "tool.*", "agent.*", "terminal.*"] },
  { name: "network", title: "Network", kinds: ["egress.*", "models.*"] },
  { name: "access", title: "Access", kinds: ["identity.*", "ssh.*"] },
  { name: "system", title: "System", kinds: [] },
];

/** Fetched with every group: it tells which entries belong to one turn. */
export const TURN_ENDED = "turn.ended";
const DEFAULT_GROUPS: readonly Group[] = ["files", "decisions"];

export function readGroups(query: URLSearchParams): Group[] {
  if (query.get("view") === "everything") return GROUPS.map((one) => one.name);
  const shown = query.get("show");
  if (shown === null) return [...DEFAULT_GROUPS];
  const wanted = shown.split(",");
  return GROUPS.filter((one) => wanted.includes(one.name)).map((one) => one.name);
}

export function groupOf(kind: string): Group {
  const matches = (pattern: string) =>
    pattern.endsWith(".*") ? kind.startsWith(pattern.slice(0, -1)) : kind === pattern;
  return GROUPS.find((one) => one.kinds.some(matches))?.name ?? "system";
}

/** The kinds of event to fetch; null for all of them. */
export function kindsOf(groups: readonly Group[]): string[] | null {
  if (groups.includes("system")) return null;
  return [...new Set([...GROUPS.filter((one) => groups.includes(one.name)).flatMap((one) => one.kinds), TURN_ENDED])];
}

// The history entry that they made is shown instead.
const SHOWN_AS_ENTRY = new Set([
  "history.undone",
  "history.redone",
  "history.restored",
  "history.reverted",
  "history.recovered",
]);

export type Row =
  | { kind: "day"; key: string; at: number; label: string }
  | { kind: "entry"; key: string; at: number; entry: HistoryEntry }
  | { kind: "event"; key: string; at: number; event: RecordedEvent; title: string; facts: string };

/** The loaded part of a list, newest first. */
export interface LoadedList<T> {
  items: readonly T[];
  /** Whether there are older items. */
  more: boolean;
}

const momentOf = (one: { at: string }): number => secondsOf(one.at);

/** The time since which a list is loaded completely. */
function completeSince(times: readonly number[], more: boolean): number {
  return more ? (times.at(-1) ?? Infinity) : -Infinity;
}

/** The list to load more of, so that the merged list grows at its end; null when both are at their end. */
export function nextToLoad(
  entries: LoadedList<HistoryEntry> | null,
  events: LoadedList<RecordedEvent> | null,
): "entries" | "events" | null {
  const one = entries === null ? -Infinity : completeSince(entries.items.map(momentOf), entries.more);
  const other = events === null ? -Infinity : completeSince(events.items.map(momentOf), events.more);
  if (one === -Infinity && other === -Infinity) return null;
  return one >= other ? "entries" : "events";
}

/** Entries and events as one list, newest first, as far back as both are loaded. */
export function mergeRows(
  entries: LoadedList<HistoryEntry> | null,
  events: LoadedList<RecordedEvent> | null,
  groups: readonly Group[],
  words: string,
  day: (at: number) => string,
): Row[] {
  const horizon = Math.max(
    entries === null ? -Infinity : completeSince(entries.items.map(momentOf), entries.more),
    events === null ? -Infinity : completeSince(events.items.map(momentOf), events.more),
  );
  const rows: Exclude<Row, { kind: "day" }>[] = [];
  if (groups.includes("files"))
    for (const entry of entries?.items ?? []) {
      const at = momentOf(entry);
      if (at >= horizon) rows.push({ kind: "entry", key: `entry ${entry.id}`, at, entry });
    }
  const all = events?.items ?? [];
  const titles = new Map(
    all
      .filter((one) => one.kind === "approval.asked")
      .map((one) => [one.data["approval"], String(one.data["title"] ?? "")]),
  );
  const answered = new Set(all.flatMap((one) => (ANSWER_KINDS.has(one.kind) ? [subject(one)] : [])));
  for (const event of all) {
    const at = momentOf(event);
    if (at < horizon || SHOWN_AS_ENTRY.has(event.kind) || !groups.includes(groupOf(event.kind))) continue;
    // A request that was answered is shown by its answer.
    if ((event.kind === "approval.asked" || event.kind === "egress.question_asked") && answered.has(subject(event)))
      continue;
    // So is the rule that the answer made.
    if (event.kind === "egress.rule_added" && answered.has(`egress ${requestOf(event)}`)) continue;
    rows.push({ kind: "event", key: `event ${event.seq}`, at, event, ...describeEvent(event, titles) });
  }
  rows.sort((a, b) => b.at - a.at);
  const wanted = words.trim().toLowerCase();
  const found = wanted === "" ? rows : rows.filter((row) => textOf(row).toLowerCase().includes(wanted));
  const list: Row[] = [];
  let last = "";
  for (const row of found) {
    const label = day(row.at);
    if (label !== last) list.push({ kind: "day", key: `day ${label}`, at: row.at, label });
    last = label;
    list.push(row);
  }
  return list;
}

const ANSWER_KINDS = new Set(["approval.answered", "approval.withdrawn", "egress.question_answered"]);
const subject = (event: RecordedEvent): string =>
  `${event.kind.split(".")[0]} ${String(event.data["approval"] ?? event.data["id"])}`;

/** The network request whose answer made a rule. Version 0.1 stored it only in the reason. */
function requestOf({ data }: RecordedEvent): string | null {
  if (typeof data["request"] === "number") return String(data["request"]);
  return /^the owner answered question (\d+) with /.exec(String(data["reason"] ?? ""))?.[1] ?? null;
}

function textOf(row: Exclude<Row, { kind: "day" }>): string {
  if (row.kind === "entry")
    return `#${row.entry.id} ${entryTitle(row.entry)} ${entryActor(row.entry)} ${row.entry.why} ${row.entry.who["prompt"] ?? ""} ${row.entry.good ? "known good" : ""}`;
  return `${row.title} ${row.facts} ${row.event.who} ${actorText(row.event.who)} ${row.event.kind}`;
}

/** All events once, newest first. */
export function withEvents(held: readonly RecordedEvent[], more: readonly RecordedEvent[]): RecordedEvent[] {
  const all = new Map([...held, ...more].map((event) => [event.seq, event]));
  return [...all.values()].sort((a, b) => b.seq - a.seq);
}

/** The newest page, followed by the held entries that are older. */
export function withNewest(held: readonly HistoryEntry[], page: readonly HistoryEntry[]): HistoryEntry[] {
  const oldest = page.at(-1)?.id ?? 0;
  return [...page, ...held.filter((entry) => entry.id < oldest)];
}

/** For the last entry of each turn, the entry before the turn. A long turn has several entries. */
export function turnStarts(events: readonly RecordedEvent[]): Map<number, number> {
  const starts = new Map<number, number>();
  for (const { kind, data } of events) {
    const changes =
      kind === TURN_ENDED && typeof data["changes"] === "object" && data["changes"] !== null
        ? (data["changes"] as Record<string, unknown>)
        : {};
    if (typeof changes["entry"] === "number" && typeof changes["before"] === "number")
      starts.set(changes["entry"], changes["before"]);
  }
  return starts;
}
