import type { EgressState } from "../../client/api";

/** A connection that no rule covers and that waits for the owner's answer. */
export interface NetworkRequest {
  id: number;
  target: string;
  who: string;
  /** The session that asks; null when it is not known which one does. */
  session: string | null;
  count: number;
  lastSeen: string;
}

/** How long a permission lasts. */
export type Reach = "once" | "conversation" | "until_restart" | "always";

export type NetworkAnswer = Reach | "never";

export interface EgressRule {
  verdict: "allow" | "deny";
  pattern: string;
  reach: string;
  session: string | null;
}

export interface EgressDecision {
  at: string;
  outcome: string;
  who: string;
  target: string;
  reason: string;
}

export interface AnswerChoice {
  answer: NetworkAnswer;
  label: string;
  /** Exactly what the answer grants or refuses. */
  effect: string;
}

/** How long a permission lasts, as the end of a sentence. */
const REACH_WORDS: Record<string, string> = {
  once: "once",
  conversation: "for this conversation only",
  until_restart: "for all sessions until Freehold restarts",
  session: "for all sessions until Freehold restarts",
  always: "always, for all sessions",
  manifest: "by freehold.toml",
};

export const reachText = (reach: string): string => REACH_WORDS[reach] ?? reach;

/** The answers that a network request can get. Without a session there is no conversation to allow it for. */
export function answerChoices(networkRequest: Pick<NetworkRequest, "target" | "session">): AnswerChoice[] {
  const target = visibleTarget(networkRequest.target);
  const allow = (answer: Reach, label: string): AnswerChoice => ({
    answer,
    label,
    effect: `Allow ${target}, ${reachText(answer)}`,
  });
  return [
    allow("once", "Once"),
    ...(networkRequest.session === null ? [] : [allow("conversation", "This conversation")]),
    allow("until_restart", "Until restart"),
    allow("always", "Always"),
    { answer: "never", label: "Never", effect: `Refuse ${target} from now on, for all sessions` },
  ];
}

/** Which sessions the lasting answers hold for. */
export function grantNote(target: string, answers: readonly string[]): string {
  const lasting = [
    ...(answers.includes("until_restart") ? ["“Until restart”"] : []),
    ...(answers.includes("always") ? ["“Always”"] : []),
  ];
  return [
    answers.includes("conversation") ? `“This conversation” allows ${target} for this session only.` : "",
    lasting.length === 0
      ? ""
      : `${lasting.join(" and ")} ${lasting.length === 1 ? "allows" : "allow"} it for all sessions.`,
  ]
    .filter((sentence) => sentence !== "")
    .join(" ");
}

export const MODES: Record<EgressState["mode"], { title: string; effect: string }> = {
  ask: { title: "Ask me", effect: "Unlisted hosts need your approval." },
  deny: { title: "Closed", effect: "Only allowed hosts can be reached. All others are refused." },
  allow: { title: "Open", effect: "All hosts can be reached, except those that a rule denies." },
};

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const number = (value: unknown): number => (typeof value === "number" ? value : 0);
const textOrNull = (value: unknown): string | null => text(value) || null;

export function networkRequestsOf(state: EgressState | null): NetworkRequest[] {
  return (state?.pending ?? []).map((row) => ({
    id: number(row["id"]),
    target: text(row["target"]),
    who: text(row["who"]),
    session: textOrNull(row["session"]),
    count: number(row["count"]),
    lastSeen: text(row["last_seen"]),
  }));
}

export function rulesOf(state: EgressState): EgressRule[] {
  return state.rules.map((row) => ({
    verdict: row["verdict"] === "allow" ? "allow" : "deny",
    pattern: text(row["rule"]),
    reach: text(row["reach"]) || text(row["scope"]),
    session: textOrNull(row["session"]),
  }));
}

/** The last decisions, newest first. */
export function decisionsOf(state: EgressState): EgressDecision[] {
  return state.recent
    .map((row) => ({
      at: text(row["at"]),
      outcome: text(row["outcome"]),
      who: text(row["who"]),
      target: text(row["target"]),
      reason: text(row["reason"]),
    }))
    .reverse();
}

const OUTCOMES: Record<string, string> = {
  connection_allowed: "Allowed",
  connection_refused: "Refused",
  connection_revoked: "Closed",
  request_refused: "Request refused",
  limit_neared: "Near a limit",
};

export const outcomeText = (outcome: string): string => OUTCOMES[outcome] ?? outcome.replaceAll("_", " ");

export const wasAllowed = (outcome: string): boolean => outcome === "connection_allowed";

/** A host name with every character spelled out that could make it look like another name. */
export function visibleTarget(target: string): string {
  return [...target]
    .map((char) => {
      const point = char.codePointAt(0) ?? 0;
      return point > 32 && point < 127 ? char : `\\u{${point.toString(16)}}`;
    })
    .join("");
}
