import type { SessionEvent } from "../../../client/api";

export interface ToolContent {
  type: string;
  text: string;
}

export type Item =
  | { kind: "prompt"; key: string; turn: number; text: string }
  | { kind: "message" | "thought"; key: string; text: string; live: boolean }
  | { kind: "tool"; key: string; title: string; status: string; content: ToolContent[] }
  | { kind: "plan"; key: string; entries: { content: string; status: string }[] }
  | { kind: "approval"; key: string; id: string; title: string; state: string; answer: string; details: [string, string][] }
  | { kind: "ended"; key: string; turn: number; words: string; entry: number | null; failed: boolean }
  | { kind: "error"; key: string; text: string; hint: string };

export interface Delta {
  kind: string;
  id: string;
  text: string;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const record = (value: unknown): Record<string, unknown> => (typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {});
const list = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.map(record) : []);

function shown(content: Record<string, unknown>): ToolContent {
  if (content["type"] === "diff") {
    const lines = (sign: string, part: unknown) => (text(part) === "" ? [] : text(part).replace(/\n$/, "").split("\n").map((line) => sign + line));
    const both = [...lines("-", content["old"] ?? content["oldText"]), ...lines("+", content["new"] ?? content["newText"])];
    return { type: "diff", text: [text(content["path"]), ...both].join("\n") };
  }
  return { type: text(content["type"]), text: text(content["text"]) || text(content["output"]) };
}

function endWords(data: Record<string, unknown>): string {
  const changes = record(data["changes"]);
  const usage = record(data["usage"]);
  const count = (name: string) => (typeof changes[name] === "number" ? (changes[name] as number) : 0);
  const changed = (["added", "changed", "removed"] as const).filter((name) => count(name) > 0).map((name) => `${count(name)} ${name}`);
  const tokens = Number(usage["input"] ?? 0) + Number(usage["output"] ?? 0);
  const parts = [
    changed.length > 0 ? changed.join(", ") : "no file changed",
    tokens > 0 && `${tokens.toLocaleString("en")} tokens`,
    typeof usage["cost"] === "number" && `$${usage["cost"].toFixed(4)}`,
    data["stop_reason"] === "cancelled" && "stopped",
  ];
  return parts.filter(Boolean).join(" · ");
}

/** What is drawn of a session: its events in order, each thing once in its last state, and what still streams. */
export function conversation(events: readonly SessionEvent[], streaming: ReadonlyMap<string, Delta>): Item[] {
  const items = new Map<string, Item>();
  for (const { seq, turn, kind, data } of events) {
    const id = text(data["id"]) || String(seq);
    switch (kind) {
      case "turn.started":
        items.set(`turn ${seq}`, { kind: "prompt", key: `turn ${seq}`, turn: turn ?? 0, text: text(record(data["prompt"])["text"]) });
        break;
      case "message":
        if (data["role"] !== "user") items.set(`message ${id}`, { kind, key: `message ${id}`, text: text(data["text"]), live: false });
        break;
      case "thought":
        items.set(`thought ${id}`, { kind, key: `thought ${id}`, text: text(data["text"]), live: false });
        break;
      case "tool":
        items.set(`tool ${id}`, {
          kind,
          key: `tool ${id}`,
          title: text(data["title"]) || text(data["kind"]),
          status: text(data["status"]),
          content: list(data["content"]).map(shown).filter((one) => one.text !== ""),
        });
        break;
      case "plan":
        items.set(`plan ${turn}`, {
          kind,
          key: `plan ${turn}`,
          entries: list(data["entries"]).map((entry) => ({ content: text(entry["content"]), status: text(entry["status"]) })),
        });
        break;
      case "approval":
        items.set(`approval ${id}`, {
          kind,
          key: `approval ${id}`,
          id,
          title: text(data["title"]),
          state: text(data["state"]),
          answer: text(data["answer"]),
          details: Object.entries(record(data["details"])).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value, null, 2)]),
        });
        break;
      case "turn.ended": {
        const entry = record(data["changes"])["entry"];
        const failed = data["error"] !== undefined && data["error"] !== null;
        items.set(`ended ${seq}`, { kind: "ended", key: `ended ${seq}`, turn: turn ?? 0, words: endWords(data), entry: typeof entry === "number" ? entry : null, failed });
        if (failed) {
          const error = record(data["error"]);
          items.set(`error ${seq}`, { kind: "error", key: `error ${seq}`, text: text(error["message"]), hint: text(error["hint"]) });
        }
        break;
      }
      case "error":
        items.set(`error ${seq}`, { kind, key: `error ${seq}`, text: text(data["message"]), hint: text(data["hint"]) });
    }
  }
  for (const delta of streaming.values()) {
    const key = `${delta.kind} ${delta.id}`;
    if (!items.has(key) && (delta.kind === "message" || delta.kind === "thought")) items.set(key, { kind: delta.kind, key, text: delta.text, live: true });
  }
  return [...items.values()];
}

/** Text with its fenced code apart, so that code keeps its columns. */
export function pieces(words: string): { code: boolean; text: string }[] {
  return words
    .split(/^```[^\n]*\n?/m)
    .map((part, index) => ({ code: index % 2 === 1, text: index % 2 === 1 ? part.replace(/\n$/, "") : part.trim() }))
    .filter((part) => part.text !== "");
}
