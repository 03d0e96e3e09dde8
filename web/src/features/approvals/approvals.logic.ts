import type { ApprovalView } from "../../client/api";

export type Reply = ApprovalView["answer"] & string;

/** One question of an agent's, as it is drawn: the words around it are ours, what is asked is shown exactly. */
export interface Ask {
  id: string;
  session: string;
  at: string;
  /** What it wants to do, in our words. */
  wants: string;
  /** The agent's own words; empty when they say no more than the parts. */
  title: string;
  parts: Part[];
  replies: Choice[];
  /** Whether words of the owner's own are an answer. */
  free: boolean;
}

export type Part = { kind: "command" | "text" | "question"; label: string; text: string } | { kind: "diff"; label: string; lines: ChangedLine[] };

export interface Choice {
  label: string;
  means: string;
  answer: Reply;
  note?: string;
  tone: "yes" | "more" | "no";
}

export interface ChangedLine {
  kind: "same" | "added" | "removed" | "gap";
  text: string;
}

const WANTS: Record<string, string> = {
  execute: "run a command",
  edit: "change a file",
  delete: "delete a file",
  move: "move a file",
  read: "read a file",
  search: "search",
  fetch: "fetch from the network",
  think: "think",
  switch_mode: "work in another mode",
  host: "use a tool of Freehold’s",
};

const LABELS: Record<string, string> = { command: "The exact command", folder: "In the folder", input: "What it gives", paths: "On" };

const LASTING: Record<Reply, Choice> = {
  once: { label: "Once", means: "Allow exactly this, now; the next time it asks again", answer: "once", tone: "yes" },
  session: { label: "This session", means: "Allow exactly this for the rest of this session", answer: "session", tone: "more" },
  always: { label: "Always", means: "Allow exactly this from now on, in every session", answer: "always", tone: "more" },
  reject: { label: "No", means: "Refuse this", answer: "reject", tone: "no" },
};

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const record = (value: unknown): Record<string, unknown> => (typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {});

/** What is drawn of an approval. Every detail is shown: one that is not known here is shown as it came. */
export function askOf(row: ApprovalView): Ask {
  const { details } = row;
  const head = { id: row.id, session: row.session, at: row.at };
  if (details["kind"] === "question") {
    const choices = list(details["options"]).map(text).filter(Boolean);
    const free = details["free_text"] === true;
    return {
      ...head,
      wants: "ask you something",
      title: "",
      parts: [{ kind: "question", label: "The question", text: text(details["input"]) || row.title }],
      replies: [
        ...choices.map((choice): Choice => ({ label: choice, means: "Answer with this", answer: "once", note: choice, tone: "more" })),
        ...(choices.length === 0 && !free ? [{ ...LASTING.once, label: "Yes", means: "Answer yes" }] : []),
        { ...LASTING.reject, means: "Answer no" },
      ],
      free,
    };
  }
  const parts = partsOf(details);
  // Titles are one line: what breaks lines is spelled out in them, and in a command it is not.
  const line = (text: string) => text.replace(/⟨U\+000[9AD]⟩|⟨[^⟩]*$/g, " ").replace(/\s+/g, " ").trim();
  const said = parts.some((part) => part.kind !== "diff" && line(part.text).startsWith(line(row.title)));
  return { ...head, wants: WANTS[row.kind] ?? "use a tool", title: said ? "" : row.title, parts, replies: repliesOf(row).map((reply) => LASTING[reply]), free: false };
}

function repliesOf(row: ApprovalView): readonly Reply[] {
  const offered = row.options.filter((one) => one in LASTING);
  return offered.length > 0 ? offered : ["once", "reject"];
}

function partsOf(details: Record<string, unknown>): Part[] {
  return Object.entries(details).flatMap(([name, value]): Part[] => {
    if (name === "diffs")
      return list(value).map((one) => {
        const { path, old, new: made } = record(one);
        return { kind: "diff", label: text(path), lines: changedLines(typeof old === "string" ? old : "", text(made)) };
      });
    const words = typeof value === "string" ? value : Array.isArray(value) && value.every((one) => typeof one === "string") ? value.join("\n") : JSON.stringify(value, null, 2);
    return words === "" || words === undefined ? [] : [{ kind: name === "command" ? "command" : "text", label: LABELS[name] ?? name, text: words }];
  });
}

/** How many lines there are to look at. */
export const linesIn = (parts: readonly Part[]): number => parts.reduce((sum, part) => sum + (part.kind === "diff" ? part.lines.length : part.text.split("\n").length), 0);

const AROUND = 3;

/** A change as lines: whatever is not in both is there, with a little of what is around it. */
export function changedLines(old: string, made: string): ChangedLine[] {
  const before = linesOf(old);
  const after = linesOf(made);
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  const as = (kind: ChangedLine["kind"], lines: readonly string[]) => lines.map((line): ChangedLine => ({ kind, text: line }));
  const gap = (count: number): ChangedLine[] => (count > 0 ? [{ kind: "gap", text: count === 1 ? "1 unchanged line" : `${count} unchanged lines` }] : []);
  return [
    ...gap(head - AROUND),
    ...as("same", before.slice(Math.max(0, head - AROUND), head)),
    ...as("removed", before.slice(head, before.length - tail)),
    ...as("added", after.slice(head, after.length - tail)),
    ...as("same", tail === 0 ? [] : after.slice(after.length - tail, after.length - Math.max(0, tail - AROUND))),
    ...gap(tail - AROUND),
    ...lastEnd(old, made),
  ];
}

const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** A file that ends within its last line looks like one that does not: said where it changes. */
function lastEnd(old: string, made: string): ChangedLine[] {
  if (made === "" || made.endsWith("\n") === (old === "" || old.endsWith("\n"))) return [];
  return [{ kind: "gap", text: made.endsWith("\n") ? "The last line gets a line end" : "The last line has no line end" }];
}

/** Those that wait, the oldest first, after one more was told of. Telling it twice changes nothing. */
export function withApproval(rows: readonly ApprovalView[], told: unknown): readonly ApprovalView[] {
  const row = told as ApprovalView;
  const others = rows.filter((one) => one.id !== row.id);
  if (row.state !== "pending") return others.length === rows.length ? rows : others;
  return [...others, row].sort((a, b) => (a.at === b.at ? (a.id < b.id ? -1 : 1) : a.at < b.at ? -1 : 1));
}

export interface Key {
  key: string;
  code: string;
  altKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
  /** Whether keys belong to what has the focus. */
  typing: boolean;
}

/** Milliseconds that a question is seen before anything answers it: what pops up is not answered by what was meant for something else. */
export const SEEN_FOR = 600;

/** `page`: the numbers answer whenever nothing is typed; `alt`: only together with Alt. */
export type Keys = "page" | "alt" | "none";

/** A key means what is being worked on: with a session on the screen, what that one asks in its dock and nothing else. */
export function keysOf(place: "dock" | "bar", sessionShown: boolean): Keys {
  if (place === "dock") return "page";
  return sessionShown ? "none" : "alt";
}

/** Whether what was pressed at a moment can have been meant for a question that is seen since another; null for one out of sight. */
export const wasSeen = (since: number | null, pressed: number): boolean => since !== null && pressed - since >= SEEN_FOR;

/** Which of `count` answers a key means: its number, and with Alt also while something is typed. Null for none. */
export function answerOf(pressed: Key, count: number): number | null {
  if (pressed.ctrlKey || pressed.metaKey || pressed.shiftKey || (pressed.typing && !pressed.altKey)) return null;
  const number = /^(?:Digit|Numpad)([1-9])$/.exec(pressed.code)?.[1] ?? (/^[1-9]$/.test(pressed.key) ? pressed.key : undefined);
  return number !== undefined && Number(number) <= count ? Number(number) - 1 : null;
}
