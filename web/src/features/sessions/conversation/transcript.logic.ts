import type { SessionEvent } from "../../../client/api";
import { LANGUAGE } from "../../../language/translation";
import type { Stream } from "./events.logic";

export type ToolPart = { type: "text"; text: string } | { type: "diff"; path: string; old: string; now: string };

export interface Changes {
  added: number;
  changed: number;
  removed: number;
  /** The history entries before and after the turn. */
  entry: number;
  before: number;
  /** Others changed files at the same time, so some of the changes may be theirs. */
  shared?: boolean;
}

export type Item =
  | {
      kind: "prompt";
      key: string;
      turn: number;
      text: string;
      files: string[];
      images: { mime: string; size: number }[];
      queued: boolean;
    }
  | { kind: "message" | "thought"; key: string; seq: number; text: string; live: boolean; cut: boolean }
  | {
      kind: "tool";
      key: string;
      turn: number;
      title: string;
      does: string;
      status: string;
      locations: string[];
      parts: ToolPart[];
      input: string;
    }
  | { kind: "pictures"; key: string; turn: number; text: string; pictures: { place: number; mime: string }[] }
  | { kind: "plan"; key: string; entries: { content: string; status: string }[] }
  | { kind: "approval"; key: string; title: string; state: string; answer: string; note: string; isQuestion: boolean }
  | { kind: "ended"; key: string; seq: number; turn: number; reason: string; changes: Changes | null; usage: string }
  | { kind: "error"; key: string; code: string; text: string; hint: string }
  | { kind: "rewound"; key: string };

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const record = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
const list = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.map(record) : []);
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
const number = (value: unknown): number | null => (typeof value === "number" ? value : null);

/** What a turn used. A number that is not known is called unknown. */
export function usageText(given: unknown): string {
  const usage = record(given);
  const [input, output, cost] = [number(usage["input"]), number(usage["output"]), number(usage["cost"])];
  const tokens =
    input === null && output === null
      ? "tokens unknown"
      : `${(input ?? 0).toLocaleString(LANGUAGE)} tokens in, ${(output ?? 0).toLocaleString(LANGUAGE)} out`;
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
  return {
    added: count("added"),
    changed: count("changed"),
    removed: count("removed"),
    entry,
    before,
    ...(changes["shared"] === true && { shared: true }),
  };
}

function toolParts(content: unknown): ToolPart[] {
  return list(content).flatMap((part): ToolPart[] => {
    if (part["type"] === "diff")
      return [{ type: "diff", path: text(part["path"]), old: text(part["old"]), now: text(part["new"]) }];
    return text(part["text"]) === "" ? [] : [{ type: "text", text: text(part["text"]) }];
  });
}

/** The input of a tool, unless its title already contains it. */
function inputOf(raw: unknown, title: string): string {
  if (raw === undefined || raw === null) return "";
  const command = record(raw)["command"];
  const words =
    typeof command === "string"
      ? command
      : Array.isArray(command) && command.every((word) => typeof word === "string")
        ? command.join(" ")
        : null;
  if (words !== null) return title.includes(words) ? "" : words;
  return typeof raw === "string" ? raw : JSON.stringify(raw, null, 2);
}

function itemOf({ seq, turn, kind, data }: SessionEvent): Item | null {
  const id = text(data["id"]);
  const inTurn = turn ?? 0;
  switch (kind) {
    case "queued":
      return {
        kind: "prompt",
        key: `prompt ${inTurn}`,
        turn: inTurn,
        text: text(data["text"]),
        files: [],
        images: [],
        queued: true,
      };
    case "turn.started": {
      const prompt = record(data["prompt"]);
      const images = list(prompt["images"]).map((image) => ({
        mime: text(image["mime"]),
        size: number(image["size"]) ?? 0,
      }));
      return {
        kind: "prompt",
        key: `prompt ${inTurn}`,
        turn: inTurn,
        text: text(prompt["text"]),
        files: texts(prompt["files"]),
        images,
        queued: false,
      };
    }
    case "message":
      return data["role"] === "user"
        ? null
        : { kind, key: `message ${seq}`, seq, text: text(data["text"]), live: false, cut: data["cut"] === true };
    case "thought":
      return { kind, key: `thought ${seq}`, seq, text: text(data["text"]), live: false, cut: data["cut"] === true };
    case "tool": {
      const title = text(data["title"]) || text(data["kind"]) || "tool";
      return {
        kind,
        // Agents number their tool calls again in each process, so an id is unique only within its turn.
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
    case "pictures":
      return {
        kind,
        key: `pictures ${seq}`,
        turn: inTurn,
        text: text(data["text"]),
        pictures: list(data["pictures"]).flatMap((one) => {
          const place = number(one["place"]);
          return place === null ? [] : [{ place, mime: text(one["mime"]) }];
        }),
      };
    case "plan":
      return {
        kind,
        key: `plan ${inTurn}`,
        entries: list(data["entries"]).map((entry) => ({
          content: text(entry["content"]),
          status: text(entry["status"]),
        })),
      };
    case "approval":
      return {
        kind,
        key: `approval ${id}`,
        title: text(data["title"]),
        state: text(data["state"]),
        answer: text(data["answer"]),
        note: text(data["note"]),
        isQuestion: record(data["details"])["kind"] === "question",
      };
    case "turn.ended":
      return {
        kind: "ended",
        key: `ended ${seq}`,
        seq,
        turn: inTurn,
        reason: text(data["stop_reason"]),
        changes: changesOf(data["changes"]),
        usage: usageText(data["usage"]),
      };
    case "error":
      return {
        kind,
        key: `error ${seq}`,
        code: text(data["code"]),
        text: text(data["message"]),
        hint: text(data["hint"]),
      };
    case "rewound":
      return { kind, key: `rewound ${seq}` };
    default:
      return null;
  }
}

/** The item of an event. An event that cannot be read is shown with the reason, and the others stay. */
function readItem(event: SessionEvent): Item | null {
  try {
    return itemOf(event);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return {
      kind: "error",
      key: `unreadable ${event.seq}`,
      code: "",
      text: `This event of the session could not be read: ${reason}`,
      hint: "",
    };
  }
}

const itemCache = new WeakMap<SessionEvent, Item | null>();

function cachedItem(event: SessionEvent): Item | null {
  const known = itemCache.get(event);
  if (known !== undefined) return known;
  const item = readItem(event);
  itemCache.set(event, item);
  return item;
}

/**
 * The items to draw for the events of a session. Each item appears once, in its last state, where it began. A queued
 * prompt appears where it was sent. An item stays the same object until it changes.
 */
export function transcriptItems(events: readonly SessionEvent[]): Item[] {
  const items = new Map<string, Item>();
  for (const event of events) {
    if (event.kind === "dropped") {
      items.delete(`prompt ${event.turn}`);
      continue;
    }
    const item = cachedItem(event);
    if (item === null) continue;
    if (event.kind === "turn.started") items.delete(item.key);
    if (item.kind === "approval" && item.state === "pending") continue;
    items.set(item.key, item);
  }
  // Queued prompts come last.
  const all = [...items.values()];
  const isQueued = (item: Item) => item.kind === "prompt" && item.queued;
  return all.some(isQueued) ? [...all.filter((item) => !isQueued(item)), ...all.filter(isQueued)] : all;
}

/** The items with the texts that are being written, before the queued prompts. */
export function withStreams(items: readonly Item[], streams: ReadonlyMap<string, Stream>): readonly Item[] {
  const live = [...streams.values()]
    .filter((one) => one.text !== "")
    .map((one): Item => ({ kind: one.kind, key: one.key, seq: 0, text: one.text, live: true, cut: false }));
  if (live.length === 0) return items;
  const place = items.findLastIndex((item) => item.kind !== "prompt" || !item.queued) + 1;
  return [...items.slice(0, place), ...live, ...items.slice(place)];
}

/** Whether the agent works. `asOf` is the last event when the session was reported as working; null when it was not. */
export function isWorking(items: readonly Item[], asOf: number | null): boolean {
  if (asOf === null) return false;
  const last = items.findLast((item) => item.kind !== "prompt" || !item.queued);
  return !(last?.kind === "ended" && last.seq > asOf);
}

/** The key under which an item is drawn. A message keeps the key that it had while it was written. */
export function drawKey(item: Item, streamedKeys: ReadonlyMap<number, string>): string {
  return (item.kind === "message" || item.kind === "thought" ? streamedKeys.get(item.seq) : undefined) ?? item.key;
}

/** A longer message is drawn in parts. */
const MAX_ESTIMATED = 16_000;

const countDrawnLines = (text: string): number =>
  text.split("\n").reduce((lines, line) => lines + Math.ceil(line.length / 100), 0);

/**
 * An estimate of the height of an item before it is drawn, for the scroll bar. It is rather too low than too high, so
 * that items above only move up while the end is followed.
 */
export function estimateHeight(item: Item): number {
  switch (item.kind) {
    case "message":
      return 24 + 24 * countDrawnLines(item.text.slice(0, MAX_ESTIMATED));
    case "prompt":
      return 48 + 22 * Math.min(18, Math.floor(item.text.length / 90)) + (item.images.length > 0 ? 112 : 0);
    case "pictures":
      return 200;
    case "plan":
      return 40 + 24 * Math.min(100, item.entries.length);
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
  refusal: "The model refused",
  max_tokens: "Stopped: the model reached its token limit",
  max_turn_requests: "Stopped: the agent reached its request limit",
};

/** Why a turn ended; empty when it ended normally. */
export function endingText(reason: string): string {
  return reason === "end_turn" || reason === "" ? "" : (ENDINGS[reason] ?? reason.replaceAll("_", " "));
}

const MAX_LENGTH = 4_000;
const MAX_LINES = 16;

/** The last lines of an output, where the result is. */
export function outputEnd(output: string): { shown: string; hidden: number } {
  let end = output.length;
  while (end > 0 && output[end - 1] === "\n") end--;
  const lines = output.slice(0, end).split("\n");
  let first = Math.max(0, lines.length - MAX_LINES);
  let size = 0;
  for (let at = lines.length - 1; at >= first; at--) {
    size += (lines[at]?.length ?? 0) + 1;
    if (size > MAX_LENGTH && at < lines.length - 1) first = at + 1;
  }
  const shown = lines.slice(first).join("\n");
  return { shown: shown.length > MAX_LENGTH * 2 ? shown.slice(-MAX_LENGTH) : shown, hidden: first };
}

// Sessions of version 0.1 stored the answer "conversation" as "session".
const ANSWERS: Record<string, string> = {
  once: "You allowed this once",
  conversation: "You allowed this for this conversation",
  session: "You allowed this for this conversation",
  always: "You allowed this always",
  reject: "You refused this",
};

/** What the owner, or a rule, answered to a permission request. */
export function approvalText(item: Extract<Item, { kind: "approval" }>): string {
  if (item.state === "withdrawn") return "Withdrawn without an answer";
  if (item.isQuestion) return item.answer === "reject" ? "You answered no" : "You answered";
  if (item.state === "granted") return "Allowed by a rule";
  return ANSWERS[item.answer] ?? item.state;
}
