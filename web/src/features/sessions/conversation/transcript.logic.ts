import type { SessionEvent } from "../../../client/api";
import type { Stream } from "./events.logic";

export type ToolPart = { type: "text"; text: string } | { type: "diff"; path: string; old: string; now: string };

export interface Changes {
  added: number;
  changed: number;
  removed: number;
  /** The entries of history before and after the turn. */
  entry: number;
  before: number;
  /** Others worked at the same time: some of it may be theirs. */
  shared?: boolean;
}

export type Item =
  | { kind: "prompt"; key: string; turn: number; text: string; files: string[]; images: { mime: string; size: number }[]; waits: boolean }
  | { kind: "message" | "thought"; key: string; seq: number; text: string; live: boolean; cut: boolean }
  | { kind: "tool"; key: string; turn: number; title: string; does: string; status: string; locations: string[]; parts: ToolPart[]; input: string }
  | { kind: "plan"; key: string; entries: { content: string; status: string }[] }
  | { kind: "approval"; key: string; title: string; state: string; answer: string; note: string; asked: boolean }
  | { kind: "ended"; key: string; seq: number; turn: number; reason: string; changes: Changes | null; usage: string }
  | { kind: "error"; key: string; text: string; hint: string }
  | { kind: "rewound"; key: string };

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const record = (value: unknown): Record<string, unknown> => (typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {});
const list = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.map(record) : []);
const texts = (value: unknown): string[] => (Array.isArray(value) ? value.filter((one) => typeof one === "string") : []);
const number = (value: unknown): number | null => (typeof value === "number" ? value : null);

/** What a turn cost; what nobody counted is said to be unknown. */
export function usageWords(given: unknown): string {
  const usage = record(given);
  const [input, output, cost] = [number(usage["input"]), number(usage["output"]), number(usage["cost"])];
  const tokens = input === null && output === null ? "tokens unknown" : `${(input ?? 0).toLocaleString("en")} tokens in, ${(output ?? 0).toLocaleString("en")} out`;
  return `${tokens} · ${cost === null ? "cost unknown" : money(cost)}`;
}

function money(cost: number): string {
  if (cost === 0) return "$0";
  return cost < 0.0001 ? "under $0.0001" : `$${cost.toFixed(cost < 0.1 ? 4 : 2)}`;
}

function changesOf(given: unknown): Changes | null {
  const changes = record(given);
  const [entry, before] = [number(changes["entry"]), number(changes["before"])];
  if (entry === null || before === null) return null;
  const count = (name: string) => number(changes[name]) ?? 0;
  return { added: count("added"), changed: count("changed"), removed: count("removed"), entry, before, ...(changes["shared"] === true && { shared: true }) };
}

function toolParts(content: unknown): ToolPart[] {
  return list(content).flatMap((part): ToolPart[] => {
    if (part["type"] === "diff") return [{ type: "diff", path: text(part["path"]), old: text(part["old"]), now: text(part["new"]) }];
    return text(part["text"]) === "" ? [] : [{ type: "text", text: text(part["text"]) }];
  });
}

/** What a tool was given, where its title does not tell: the command itself, or all of it. */
function inputOf(raw: unknown, title: string): string {
  if (raw === undefined || raw === null) return "";
  const command = record(raw)["command"];
  const words = typeof command === "string" ? command : Array.isArray(command) && command.every((word) => typeof word === "string") ? command.join(" ") : null;
  if (words !== null) return title.includes(words) ? "" : words;
  return typeof raw === "string" ? raw : JSON.stringify(raw, null, 2);
}

function itemOf({ seq, turn, kind, data }: SessionEvent): Item | null {
  const id = text(data["id"]);
  const inTurn = turn ?? 0;
  switch (kind) {
    case "queued":
      return { kind: "prompt", key: `prompt ${inTurn}`, turn: inTurn, text: text(data["text"]), files: [], images: [], waits: true };
    case "turn.started": {
      const prompt = record(data["prompt"]);
      const images = list(prompt["images"]).map((image) => ({ mime: text(image["mime"]), size: number(image["size"]) ?? 0 }));
      return { kind: "prompt", key: `prompt ${inTurn}`, turn: inTurn, text: text(prompt["text"]), files: texts(prompt["files"]), images, waits: false };
    }
    case "message":
      return data["role"] === "user" ? null : { kind, key: `message ${seq}`, seq, text: text(data["text"]), live: false, cut: data["cut"] === true };
    case "thought":
      return { kind, key: `thought ${seq}`, seq, text: text(data["text"]), live: false, cut: data["cut"] === true };
    case "tool": {
      const title = text(data["title"]) || text(data["kind"]) || "tool";
      return {
        kind,
        // Agents count anew with each process of theirs: a name is good within its turn.
        key: `tool ${inTurn} ${id}`,
        turn: inTurn,
        title,
        does: text(data["kind"]),
        status: text(data["status"]),
        locations: texts(data["locations"]),
        parts: toolParts(data["content"]),
        input: inputOf(data["raw_input"], title),
      };
    }
    case "plan":
      return { kind, key: `plan ${inTurn}`, entries: list(data["entries"]).map((entry) => ({ content: text(entry["content"]), status: text(entry["status"]) })) };
    case "approval":
      return {
        kind,
        key: `approval ${id}`,
        title: text(data["title"]),
        state: text(data["state"]),
        answer: text(data["answer"]),
        note: text(data["note"]),
        asked: record(data["details"])["kind"] === "question",
      };
    case "turn.ended":
      return { kind: "ended", key: `ended ${seq}`, seq, turn: inTurn, reason: text(data["stop_reason"]), changes: changesOf(data["changes"]), usage: usageWords(data["usage"]) };
    case "error":
      return { kind, key: `error ${seq}`, text: text(data["message"]), hint: text(data["hint"]) };
    case "rewound":
      return { kind, key: `rewound ${seq}` };
    default:
      return null;
  }
}

const made = new WeakMap<SessionEvent, Item | null>();

function remembered(event: SessionEvent): Item | null {
  const known = made.get(event);
  if (known !== undefined) return known;
  const item = itemOf(event);
  made.set(event, item);
  return item;
}

/**
 * What is drawn of a session's events: each thing once, in its last state, where it began; a prompt that waited is
 * where it was sent. An item is the same object for as long as nothing of it changed.
 */
export function transcript(events: readonly SessionEvent[]): Item[] {
  const items = new Map<string, Item>();
  for (const event of events) {
    if (event.kind === "dropped") {
      items.delete(`prompt ${event.turn}`);
      continue;
    }
    const item = remembered(event);
    if (item === null) continue;
    if (event.kind === "turn.started") items.delete(item.key);
    if (item.kind === "approval" && item.state === "pending") continue;
    items.set(item.key, item);
  }
  // What waits comes after all that is said meanwhile.
  const all = [...items.values()];
  const waits = (item: Item) => item.kind === "prompt" && item.waits;
  return all.some(waits) ? [...all.filter((item) => !waits(item)), ...all.filter(waits)] : all;
}

/** With what is being said, before the prompts that wait for it. */
export function withStreams(items: readonly Item[], streams: ReadonlyMap<string, Stream>): readonly Item[] {
  const live = [...streams.values()].filter((one) => one.text !== "").map((one): Item => ({ kind: one.kind, key: one.key, seq: 0, text: one.text, live: true, cut: false }));
  if (live.length === 0) return items;
  const place = items.findLastIndex((item) => item.kind !== "prompt" || !item.waits) + 1;
  return [...items.slice(0, place), ...live, ...items.slice(place)];
}

/** Whether it is worked on. `told` is the number of the last event when it was said so: what ended since then is over. */
export function isWorking(items: readonly Item[], told: number | null): boolean {
  if (told === null) return false;
  const last = items.findLast((item) => item.kind !== "prompt" || !item.waits);
  return !(last?.kind === "ended" && last.seq > told);
}

/** The name an item is drawn under: words that were seen coming keep theirs when they are kept. */
export function drawnKey(item: Item, seen: ReadonlyMap<number, string>): string {
  return (item.kind === "message" || item.kind === "thought" ? seen.get(item.seq) : undefined) ?? item.key;
}

/**
 * A guess at how high an item will be, so that the scroll bar is about right before it is drawn. Rather too low than too
 * high: who follows the end then sees what is above move up only.
 */
export function guessHeight(item: Item): number {
  switch (item.kind) {
    case "message":
      return 24 + 24 * item.text.split("\n").reduce((lines, line) => lines + Math.ceil(line.length / 100), 0);
    case "prompt":
      return 48 + 22 * Math.min(18, Math.floor(item.text.length / 90)) + (item.images.length > 0 ? 112 : 0);
    case "plan":
      return 40 + 24 * item.entries.length;
    case "error":
      return 80;
    default:
      return 36;
  }
}

const ENDINGS: Record<string, string> = {
  cancelled: "Stopped",
  interrupted: "Interrupted by a restart",
  error: "Failed",
  refusal: "The agent refused",
  max_tokens: "Stopped at the model's limit of tokens",
  max_turn_requests: "Stopped at the agent's limit of requests",
};

/** How a turn ended when it did not just end. */
export function endingOf(reason: string): string {
  return reason === "end_turn" || reason === "" ? "" : (ENDINGS[reason] ?? reason.replaceAll("_", " "));
}

const MOST_SHOWN = 4_000;
const MOST_LINES = 16;

/** The part of an output that is shown before "show all": its end, where the result is. */
export function endOf(output: string): { shown: string; hidden: number } {
  const lines = output.replace(/\n+$/, "").split("\n");
  let first = Math.max(0, lines.length - MOST_LINES);
  let size = 0;
  for (let at = lines.length - 1; at >= first; at--) {
    size += (lines[at]?.length ?? 0) + 1;
    if (size > MOST_SHOWN && at < lines.length - 1) first = at + 1;
  }
  const shown = lines.slice(first).join("\n");
  return { shown: shown.length > MOST_SHOWN * 2 ? shown.slice(-MOST_SHOWN) : shown, hidden: first };
}
