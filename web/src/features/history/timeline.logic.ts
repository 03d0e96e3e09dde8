import type { HistoryEntry } from "../../client/api";
import { titleOf, whoOf, whoWords } from "./history.logic";

export interface Recorded {
  seq: number;
  at: string;
  kind: string;
  who: string;
  data: Record<string, unknown>;
}

export type Group = "files" | "decisions" | "work" | "network" | "access" | "house";

/** What can be shown, and the kinds of event that belong to it; what nobody names belongs to the house. */
export const GROUPS: readonly { name: Group; title: string; kinds: readonly string[] }[] = [
  { name: "files", title: "Files", kinds: ["history.*"] },
  {
    name: "decisions",
    title: "Decisions",
    kinds: ["approval.*", "policy.*", "egress.question_asked", "egress.question_answered", "egress.rule_added", "egress.rule_removed", "models.stopped", "models.resumed"],
  },
  { name: "work", title: "Work", kinds: ["session.*", "turn.*", "tool.*", "agent.*", "terminal.*"] },
  { name: "network", title: "Network", kinds: ["egress.*", "models.*"] },
  { name: "access", title: "Sign-ins", kinds: ["identity.*", "ssh.*"] },
  { name: "house", title: "House", kinds: [] },
];

export const ALWAYS = "turn.ended";
const USUAL: readonly Group[] = ["files", "decisions"];

export function readGroups(query: URLSearchParams): Group[] {
  if (query.get("view") === "everything") return GROUPS.map((one) => one.name);
  const said = query.get("show");
  if (said === null) return [...USUAL];
  const wanted = said.split(",");
  return GROUPS.filter((one) => wanted.includes(one.name)).map((one) => one.name);
}

export function groupOf(kind: string): Group {
  const matches = (pattern: string) => (pattern.endsWith(".*") ? kind.startsWith(pattern.slice(0, -1)) : kind === pattern);
  return GROUPS.find((one) => one.kinds.some(matches))?.name ?? "house";
}

/** The kinds to ask for, so that a filtered list is filled by one answer; null for all of them. */
export function kindsOf(groups: readonly Group[]): string[] | null {
  if (groups.includes("house")) return null;
  return [...new Set([...GROUPS.filter((one) => groups.includes(one.name)).flatMap((one) => one.kinds), ALWAYS])];
}

// These are told by the entry they made.
const TOLD = new Set(["history.undone", "history.redone", "history.restored", "history.reverted", "history.recovered"]);

export type Row = { kind: "day"; key: string; at: number; label: string } | { kind: "entry"; key: string; at: number; entry: HistoryEntry } | { kind: "event"; key: string; at: number; event: Recorded; title: string; facts: string };

export interface Source<T> {
  items: readonly T[];
  more: boolean;
}

export const momentOf = (event: Recorded): number => new Date(event.at).getTime() / 1000;

/** From where on one list is known to be whole: what is older may have something between it that was not asked for yet. */
function edge(times: readonly number[], more: boolean): number {
  return more ? (times.at(-1) ?? Infinity) : -Infinity;
}

/** Which source to ask for more, so that the list grows at its end; null when there is no more. */
export function behind(entries: Source<HistoryEntry> | null, events: Source<Recorded> | null): "entries" | "events" | null {
  const one = entries === null ? -Infinity : edge(entries.items.map((entry) => entry.at), entries.more);
  const other = events === null ? -Infinity : edge(events.items.map(momentOf), events.more);
  if (one === -Infinity && other === -Infinity) return null;
  return one >= other ? "entries" : "events";
}

/** Entries and events as one list, the newest first, as far back as it is whole. Both sources come the newest first. */
export function together(entries: Source<HistoryEntry> | null, events: Source<Recorded> | null, groups: readonly Group[], words: string, day: (at: number) => string): Row[] {
  const horizon = Math.max(entries === null ? -Infinity : edge(entries.items.map((one) => one.at), entries.more), events === null ? -Infinity : edge(events.items.map(momentOf), events.more));
  const rows: Exclude<Row, { kind: "day" }>[] = [];
  if (groups.includes("files")) for (const entry of entries?.items ?? []) if (entry.at >= horizon) rows.push({ kind: "entry", key: `entry ${entry.id}`, at: entry.at, entry });
  const all = events?.items ?? [];
  const asked = new Map(all.filter((one) => one.kind === "approval.asked").map((one) => [one.data["approval"], text(one.data["title"])]));
  const answered = new Set(all.flatMap((one) => (ANSWERS.has(one.kind) ? [subject(one)] : [])));
  for (const event of all) {
    const at = momentOf(event);
    if (at < horizon || TOLD.has(event.kind) || !groups.includes(groupOf(event.kind))) continue;
    // A question that was answered is told by its answer.
    if ((event.kind === "approval.asked" || event.kind === "egress.question_asked") && answered.has(subject(event))) continue;
    // So is the rule that an answer made.
    if (event.kind === "egress.rule_added" && answered.has(`egress ${questionOf(event)}`)) continue;
    rows.push({ kind: "event", key: `event ${event.seq}`, at, event, ...sentence(event, asked) });
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

const ANSWERS = new Set(["approval.answered", "approval.withdrawn", "egress.question_answered"]);
const subject = (event: Recorded): string => `${event.kind.split(".")[0]} ${String(event.data["approval"] ?? event.data["id"])}`;

/** The question whose answer made a rule, by the reason that the rule gives. */
const questionOf = (event: Recorded): string | null => /^the owner answered question (\d+) with /.exec(text(event.data["reason"]))?.[1] ?? null;

function textOf(row: Exclude<Row, { kind: "day" }>): string {
  if (row.kind === "entry") return `#${row.entry.id} ${titleOf(row.entry)} ${whoOf(row.entry)} ${row.entry.why} ${row.entry.who["prompt"] ?? ""} ${row.entry.good ? "known good" : ""}`;
  return `${row.title} ${row.facts} ${row.event.who} ${whoWords(row.event.who)} ${row.event.kind}`;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const SAID: Record<string, string> = { once: "once", session: "for the session", always: "always" };

/** What happened, in words, and its facts on one line. */
export function sentence(event: Recorded, asked: ReadonlyMap<unknown, string> = new Map()): { title: string; facts: string } {
  const { kind, data } = event;
  const answer = text(data["answer"]);
  switch (kind) {
    case "approval.asked":
      return { title: "The agent asks", facts: text(data["title"]) };
    case "approval.answered":
      return { title: answer === "reject" ? "Refused what the agent asked" : `Allowed what the agent asked, ${SAID[answer] ?? answer}`, facts: asked.get(data["approval"]) ?? "" };
    case "approval.withdrawn":
      return { title: "The agent no longer asks", facts: asked.get(data["approval"]) ?? "" };
    case "egress.question_asked":
      return { title: `Something inside wants to reach ${text(data["target"])}`, facts: "" };
    case "egress.question_answered":
      return { title: answeredWords(text(data["target"]), answer), facts: "" };
    case "egress.rule_added":
      return { title: data["verdict"] === "deny" ? `Never lets anything reach ${text(data["rule"])}` : `Lets anything reach ${text(data["rule"])}, ${SAID[text(data["scope"])] ?? text(data["scope"])}`, facts: "" };
    case "egress.rule_removed":
      return { title: removedWords(text(data["rule"]), text(data["reason"]), data["verdict"] === "deny"), facts: "" };
    case "turn.started":
      return { title: `Asked: ${text(data["text"]) || "…"}`, facts: `turn ${String(data["turn"])}` };
    case "tool.ended":
      return { title: text(data["title"]) || "A tool ended", facts: text(data["status"]) };
    case "history.marked_good":
      return { title: `Marked #${String(data["entry"])} as known good`, facts: "" };
    case "history.unmarked_good":
      return { title: `#${String(data["entry"])} is no longer marked as known good`, facts: "" };
    default:
      return { title: wordsOf(event), facts: factsOf(event) };
  }
}

function answeredWords(target: string, answer: string): string {
  if (answer === "never") return `Never lets anything reach ${target}`;
  if (answer.startsWith("by the rule 'deny")) return `Does not let it reach ${target}, ${answer}`;
  return `Lets it reach ${target}, ${SAID[answer] ?? answer}`;
}

function removedWords(rule: string, reason: string, denied: boolean): string {
  if (reason === "it was used") return `Reached ${rule}, as was let once`;
  if (reason === "the session ended") return `No longer lets anything reach ${rule}: that was for the session`;
  return denied ? `No longer refuses ${rule}` : `No longer lets anything reach ${rule}`;
}

/** `identity.token_created` → `Token created`. */
export function wordsOf(event: Recorded): string {
  const words = (event.kind.split(".").slice(1).join(" ") || event.kind).replaceAll("_", " ");
  const room = event.kind.split(".")[0] ?? "";
  const whole = words.includes(room) || ["identity", "egress"].includes(room) ? words : `${room} ${words}`;
  return whole.charAt(0).toUpperCase() + whole.slice(1);
}

const LONGEST = 120;

/** The facts of an event on one line. */
export function factsOf(event: Recorded): string {
  return Object.entries(event.data)
    .filter(([, value]) => value !== null && value !== "")
    .map(([name, value]) => {
      const said = typeof value === "object" ? JSON.stringify(value) : String(value);
      return `${name.replaceAll("_", " ")} ${said.length > LONGEST ? `${said.slice(0, LONGEST)}…` : said}`;
    })
    .join(" · ");
}

/** Old and new events together, the newest first, each once. */
export function withEvents(held: readonly Recorded[], more: readonly Recorded[]): Recorded[] {
  const all = new Map([...held, ...more].map((event) => [event.seq, event]));
  return [...all.values()].sort((a, b) => b.seq - a.seq);
}

/** The newest page over what is held; what is held and older than the page stays. */
export function withNewest(held: readonly HistoryEntry[], page: readonly HistoryEntry[]): HistoryEntry[] {
  const oldest = page.at(-1)?.id ?? 0;
  return [...page, ...held.filter((entry) => entry.id < oldest)];
}

/** For each turn's last entry, the entry it began from: a long turn has several. */
export function turnStarts(events: readonly Recorded[]): Map<number, number> {
  const starts = new Map<number, number>();
  for (const { kind, data } of events) {
    const changes = kind === ALWAYS && typeof data["changes"] === "object" && data["changes"] !== null ? (data["changes"] as Record<string, unknown>) : {};
    if (typeof changes["entry"] === "number" && typeof changes["before"] === "number") starts.set(changes["entry"], changes["before"]);
  }
  return starts;
}
