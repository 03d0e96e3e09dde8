import type { ApprovalInfo, RequestPart } from "../../client/api";
import { formatBytes } from "../../ui/format";
import { grantNote } from "../network/egress.logic";

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
  /** What the owner must know before the answer. */
  warnings: string[];
  choices: AnswerChoice[];
  /** Which sessions an answer holds for, where that must be said. */
  grantNote: string;
  /** Whether the owner can answer with a text. */
  acceptsText: boolean;
  /** The digest of the call that is shown. An answer holds for this call only. */
  digest: string;
}

export interface RequestDetail {
  kind: "command" | "text" | "question" | "diff";
  label: string;
  /** The text to show. For a change, the new text. */
  text: string;
  /** For a change: the old text, null for a new file. */
  old?: string | null;
  /** What runs this file or command by itself. */
  runsByItself: string | null;
  /** Sentences about this part that the owner must read. */
  warnings: string[];
}

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

const LABELS: Partial<Record<RequestPart["kind"], string>> = { command: "Exact command", folder: "In folder" };

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
/** What is drawn of an approval: every part of the call. One that cannot be read can only be refused. */
export function permissionRequestOf(row: ApprovalInfo): PermissionRequest {
  const head = { id: row.id, session: row.session, at: row.at, digest: row.digest };
  try {
    return { ...head, ...(row.details["kind"] === "question" ? questionOf(row) : callOf(row)) };
  } catch {
    return {
      ...head,
      action: "do something that this page cannot show",
      title: "",
      details: [],
      warnings: ["This page cannot show this request. Refuse it, or answer it with “freehold approvals”."],
      choices: [answerChoice("reject", "")],
      grantNote: "",
      acceptsText: false,
    };
  }
}

type RequestContent = Omit<PermissionRequest, "id" | "session" | "at" | "digest">;

function callOf(row: ApprovalInfo): RequestContent {
  const details = [...row.parts.map(detailOf), ...offeredAnswers(row)];
  const target = targetOf(row);
  const lasting = row.lasting_effect;
  const answers = answersOf(row);
  return {
    action: ACTIONS[row.kind] ?? "use a tool",
    title: isRepeated(row.title, details) ? "" : row.title,
    details,
    warnings: warningsOf(row),
    choices: answers.map((answer) =>
      answerChoice(answer, target ?? (answer === "once" ? "exactly this" : (lasting ?? "this"))),
    ),
    grantNote: target !== null ? grantNote(target, answers) : lasting === null ? "" : lastingNote(lasting),
    acceptsText: false,
  };
}

/** A lasting answer allows more than the call that is shown. */
function lastingNote(lasting: string): string {
  return `“This conversation” allows ${lasting}, for this session only. “Always” allows it for all sessions.`;
}

function warningsOf(row: ApprovalInfo): string[] {
  return [
    ...(row.asked_again
      ? ["The agent changed this call while you were asked. Your earlier answer did not count."]
      : []),
    ...(row.names_nothing
      ? ["This request names neither a command nor a path. You cannot see what the agent would do."]
      : []),
    ...(row.runs_by_itself ? ["Something in this request runs by itself later, without being asked for."] : []),
    ...(row.complete ? [] : [`${formatBytes(row.hidden_bytes)} of this request are not shown.`]),
  ];
}

function detailOf(part: RequestPart): RequestDetail {
  const isDiff = part.kind === "diff";
  return {
    kind: isDiff ? "diff" : part.kind === "command" ? "command" : "text",
    label: isDiff ? (part.path ?? part.label) : (LABELS[part.kind] ?? part.label),
    text: isDiff ? (part.new ?? "") : part.kind === "path" ? (part.path ?? part.text) : part.text,
    ...(isDiff && { old: part.old }),
    runsByItself: part.runs_by_itself,
    warnings: [
      ...(part.resolved === null ? [] : [`This leads to ${part.resolved}`]),
      ...(part.warning === null ? [] : [part.warning]),
      ...(part.hidden_bytes > 0 ? [`${formatBytes(part.hidden_bytes)} of this part are not shown`] : []),
    ],
  };
}

const SENT_FOR = { allow: "sent when you allow", reject: "sent when you refuse" } as const;

/** The answers that the agent itself offers. */
function offeredAnswers({ agent_options: offered }: ApprovalInfo): RequestDetail[] {
  if (offered.length === 0) return [];
  const lines = offered.map(({ name, sent_for: sent }) => `${name} (${sent === null ? "never sent" : SENT_FOR[sent]})`);
  return [
    { kind: "text", label: "Answers that the agent offers", text: lines.join("\n"), runsByItself: null, warnings: [] },
  ];
}

function questionOf({ details, title }: ApprovalInfo): RequestContent {
  const options = list(details["options"]).map(text).filter(Boolean);
  const acceptsText = details["free_text"] === true;
  const yes: AnswerChoice = { ...answerChoice("once", ""), label: "Yes", effect: "Answer yes" };
  return {
    action: "ask you a question",
    title: "",
    details: [
      {
        kind: "question",
        label: "Question",
        text: text(details["input"]) || title,
        runsByItself: null,
        warnings: [],
      },
    ],
    warnings: [],
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

/** Titles are shorter; this is for one that is not. */
const MAX_COMPARED = 2_000;

/** Whether a detail already begins with the title. In titles, which have one line, line breaks are spelled out. */
function isRepeated(title: string, details: readonly RequestDetail[]): boolean {
  const oneLine = (words: string) =>
    words
      .slice(0, MAX_COMPARED)
      .replace(/⟨U\+000[9AD]⟩|⟨[^⟩]{0,8}$/g, " ")
      .replace(/\s+/g, " ")
      .trim();
  const wanted = oneLine(title);
  return details.some((detail) => detail.kind !== "diff" && oneLine(detail.text).startsWith(wanted));
}

/** The host and port that Freehold's own tool asks for; null for other requests, whose texts are the agent's. */
function targetOf({ kind, parts }: ApprovalInfo): string | null {
  if (kind !== "host") return null;
  const target = parts.find((part) => part.kind === "text")?.text.split("\n", 1)[0] ?? "";
  return /^[^\s/]{1,255}:\d{1,5}$/.test(target) ? target : null;
}

const ANSWERS: readonly PermissionAnswer[] = ["once", "conversation", "always", "reject"];

function answersOf(row: ApprovalInfo): readonly PermissionAnswer[] {
  const offered: readonly string[] = row.options;
  const answers = ANSWERS.filter((answer) => offered.includes(answer));
  return answers.length > 0 ? answers : ["once", "reject"];
}

/** The open approvals, oldest first, after an event about one of them. A repeated event changes nothing. */
export function withApproval(rows: readonly ApprovalInfo[], event: unknown): readonly ApprovalInfo[] {
  const row = event as ApprovalInfo;
  const others = rows.filter((one) => one.id !== row.id);
  if (row.state !== "pending") return others.length === rows.length ? rows : others;
  return [...others, row].sort((a, b) => (a.at === b.at ? (a.id < b.id ? -1 : 1) : a.at < b.at ? -1 : 1));
}
