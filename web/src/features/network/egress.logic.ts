import type { EgressState } from "../../client/api";

export interface Question {
  id: number;
  target: string;
  who: string;
  count: number;
  first_seen: string;
  last_seen: string;
}

export interface Rule {
  verdict: "allow" | "deny";
  rule: string;
  scope: string;
}

export interface Decision {
  at: string;
  outcome: string;
  who: string;
  target: string;
  reason: string;
}

export type Reply = "once" | "session" | "always" | "never";

export const REPLIES: readonly { answer: Reply; label: string; means: string }[] = [
  { answer: "once", label: "Once", means: "Let it through now and ask again next time" },
  { answer: "session", label: "For now", means: "Let it through until Freehold is restarted" },
  { answer: "always", label: "Always", means: "Let it through from now on" },
  { answer: "never", label: "Never", means: "Refuse it from now on without asking" },
];

export const MODES: Record<EgressState["mode"], { title: string; means: string }> = {
  ask: { title: "Ask me", means: "Whatever no rule names waits for your answer." },
  deny: { title: "Closed", means: "Only what a rule allows leaves the computer; the rest is refused." },
  allow: { title: "Open", means: "Everything leaves the computer unless a rule denies it." },
};

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const number = (value: unknown): number => (typeof value === "number" ? value : 0);

export function questionsOf(state: EgressState): Question[] {
  return state.pending.map((row) => ({
    id: number(row["id"]),
    target: text(row["target"]),
    who: text(row["who"]),
    count: number(row["count"]),
    first_seen: text(row["first_seen"]),
    last_seen: text(row["last_seen"]),
  }));
}

export function rulesOf(state: EgressState): Rule[] {
  return state.rules.map((row) => ({
    verdict: row["verdict"] === "allow" ? "allow" : "deny",
    rule: text(row["rule"]),
    scope: text(row["scope"]),
  }));
}

export function decisionsOf(state: EgressState): Decision[] {
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
  connection_allowed: "Let through",
  connection_refused: "Refused",
  connection_revoked: "Cut",
  request_refused: "Request refused",
  limit_neared: "Near a limit",
};

export const outcomeWords = (outcome: string): string => OUTCOMES[outcome] ?? outcome.replaceAll("_", " ");

export const wasLetThrough = (outcome: string): boolean => outcome === "connection_allowed";

/** A name in full view: what could make it look like another (controls, marks of direction, look-alike scripts) is spelled out. */
export function plainTarget(target: string): string {
  return [...target]
    .map((char) => {
      const point = char.codePointAt(0) ?? 0;
      return point > 32 && point < 127 ? char : `\\u{${point.toString(16)}}`;
    })
    .join("");
}
