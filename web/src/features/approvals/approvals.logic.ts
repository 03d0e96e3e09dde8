import type { ApprovalInfo } from "../../client/api";
import { grantNote } from "../network/egress.logic";
import { type ChangedLine, changedLines } from "./changedLines.logic";

/** Once, for this conversation or always; or refused. */
export type PermissionAnswer = "once" | "conversation" | "always" | "reject";

/** A permission request as it is drawn. The words around it are ours; what the agent would do is shown exactly. */
export interface PermissionRequest {
  id: string;
  session: string;
  at: string;
  /** What the agent wants to do, in our words. */
  action: string;
  /** The agent's own words. Empty when they say no more than the details. */
  title: string;
  details: RequestDetail[];
  choices: AnswerChoice[];
  /** Which sessions an answer holds for, where that must be said. */
  grantNote: string;
  /** Whether the owner can answer with a text. */
  acceptsText: boolean;
}

export type RequestDetail =
  | { kind: "command" | "text" | "question"; label: string; text: string }
  | { kind: "diff"; label: string; lines: ChangedLine[] };

export interface AnswerChoice {
  label: string;
  /** Exactly what the answer grants or refuses. */
  effect: string;
  answer: PermissionAnswer;
  note?: string;
  tone: "yes" | "more" | "no";
}

const ACTIONS: Record<string, string> = {
  execute: "run a command",
  edit: "change a file",
  delete: "delete a file",
  move: "move a file",
  read: "read a file",
  search: "search",
  fetch: "use the network",
  think: "think",
  switch_mode: "switch to another mode",
  host: "use a Freehold tool",
};

const DETAIL_LABELS: Record<string, string> = {
  command: "Exact command",
  folder: "In folder",
  input: "Input",
  paths: "Paths",
};

/** The answers that grant `subject`, such as "exactly this" or "example.org:443". */
function answerChoice(answer: PermissionAnswer, subject: string): AnswerChoice {
  switch (answer) {
    case "once":
      return { label: "Once", effect: `Allow ${subject}, once`, answer, tone: "yes" };
    case "conversation":
      return {
        label: "This conversation",
        effect: `Allow ${subject}, for this conversation only`,
        answer,
        tone: "more",
      };
    case "always":
      return { label: "Always", effect: `Allow ${subject}, always, for all sessions`, answer, tone: "more" };
    case "reject":
      return { label: "No", effect: "Refuse this", answer, tone: "no" };
  }
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const record = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

/** What is drawn of an approval. Every detail is shown; an unknown one is shown as it came. */
export function permissionRequestOf(row: ApprovalInfo): PermissionRequest {
  const head = { id: row.id, session: row.session, at: row.at };
  if (row.details["kind"] === "question") return { ...head, ...questionOf(row) };
  const details = detailsOf(row.details);
  const target = targetOf(row);
  const answers = answersOf(row);
  return {
    ...head,
    action: ACTIONS[row.kind] ?? "use a tool",
    title: isRepeated(row.title, details) ? "" : row.title,
    details,
    choices: answers.map((answer) => answerChoice(answer, target ?? "exactly this")),
    grantNote: target === null ? "" : grantNote(target, answers),
    acceptsText: false,
  };
}

function questionOf({ details, title }: ApprovalInfo): Omit<PermissionRequest, "id" | "session" | "at"> {
  const options = list(details["options"]).map(text).filter(Boolean);
  const acceptsText = details["free_text"] === true;
  const yes: AnswerChoice = { ...answerChoice("once", ""), label: "Yes", effect: "Answer yes" };
  return {
    action: "ask you a question",
    title: "",
    details: [{ kind: "question", label: "Question", text: text(details["input"]) || title }],
    choices: [
      ...options.map(
        (option): AnswerChoice => ({
          label: option,
          effect: "Answer with this",
          answer: "once",
          note: option,
          tone: "more",
        }),
      ),
      ...(options.length === 0 && !acceptsText ? [yes] : []),
      { ...answerChoice("reject", ""), effect: "Answer no" },
    ],
    grantNote: "",
    acceptsText,
  };
}

/** Whether a detail already begins with the title. In titles, which have one line, line breaks are spelled out. */
function isRepeated(title: string, details: readonly RequestDetail[]): boolean {
  const oneLine = (words: string) =>
    words
      .replace(/⟨U\+000[9AD]⟩|⟨[^⟩]*$/g, " ")
      .replace(/\s+/g, " ")
      .trim();
  return details.some((detail) => detail.kind !== "diff" && oneLine(detail.text).startsWith(oneLine(title)));
}

/** The host and port that a request for the network names; null for other requests. */
function targetOf({ kind, details }: ApprovalInfo): string | null {
  if (kind !== "fetch") return null;
  const target = text(details["target"]) || text(details["input"]).split("\n")[0] || "";
  return /^[^\s/]+:\d{1,5}$/.test(target) ? target : null;
}

const ANSWERS: readonly PermissionAnswer[] = ["once", "conversation", "always", "reject"];

function answersOf(row: ApprovalInfo): readonly PermissionAnswer[] {
  const offered: readonly string[] = row.options;
  const answers = ANSWERS.filter((answer) => offered.includes(answer));
  return answers.length > 0 ? answers : ["once", "reject"];
}

function detailsOf(details: Record<string, unknown>): RequestDetail[] {
  return Object.entries(details).flatMap(([name, value]): RequestDetail[] => {
    if (name === "diffs")
      return list(value).map((one) => {
        const { path, old, new: after } = record(one);
        return { kind: "diff", label: text(path), lines: changedLines(text(old), text(after)) };
      });
    const shown =
      typeof value === "string"
        ? value
        : Array.isArray(value) && value.every((one) => typeof one === "string")
          ? value.join("\n")
          : JSON.stringify(value, null, 2);
    return shown === "" || shown === undefined
      ? []
      : [{ kind: name === "command" ? "command" : "text", label: DETAIL_LABELS[name] ?? name, text: shown }];
  });
}

export const countLines = (details: readonly RequestDetail[]): number =>
  details.reduce(
    (sum, detail) => sum + (detail.kind === "diff" ? detail.lines.length : detail.text.split("\n").length),
    0,
  );

/** The open approvals, oldest first, after an event about one of them. A repeated event changes nothing. */
export function withApproval(rows: readonly ApprovalInfo[], event: unknown): readonly ApprovalInfo[] {
  const row = event as ApprovalInfo;
  const others = rows.filter((one) => one.id !== row.id);
  if (row.state !== "pending") return others.length === rows.length ? rows : others;
  return [...others, row].sort((a, b) => (a.at === b.at ? (a.id < b.id ? -1 : 1) : a.at < b.at ? -1 : 1));
}
