import type { TimelineEvent } from "../../client/api";
import { shorten } from "../../ui/format";

export type RecordedEvent = Omit<TimelineEvent, "hash">;

export interface EventText {
  title: string;
  /** The other facts in one line. */
  facts: string;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

const REACH_WORDS: Record<string, string> = {
  once: "once",
  conversation: "for one conversation",
  until_restart: "until restart",
  always: "always",
};

/** How long an answer holds. In version 0.1 "session" meant the conversation for agents, and until restart for hosts. */
function reachOf(value: unknown, subject: "agent" | "host"): string {
  const stored = text(value);
  const reach = stored === "session" ? (subject === "agent" ? "conversation" : "until_restart") : stored;
  return REACH_WORDS[reach] ?? reach;
}

/** The text of an event. `titles` has the titles of permission requests by their id. */
export function describeEvent(event: RecordedEvent, titles: ReadonlyMap<unknown, string> = new Map()): EventText {
  const { kind, data } = event;
  const title = (words: string, facts = ""): EventText => ({ title: words, facts });
  const requestTitle = titles.get(data["approval"]) ?? "";
  switch (kind) {
    case "approval.asked":
      return title("An agent asked for permission", text(data["title"]));
    case "approval.answered":
      return data["answer"] === "reject"
        ? title("Permission refused", requestTitle)
        : title(`Permission given, ${reachOf(data["answer"], "agent")}`, requestTitle);
    case "approval.withdrawn":
      return title("Permission request withdrawn", requestTitle);
    case "egress.question_asked":
      return title(`Connection to ${text(data["target"])} needs an answer`);
    case "egress.question_answered":
      return title(networkAnswer(text(data["target"]), text(data["answer"])));
    case "egress.rule_added":
      return title(
        data["verdict"] === "deny"
          ? `Rule added: deny ${text(data["rule"])}`
          : `Rule added: allow ${text(data["rule"])}, ${reachOf(data["scope"], "host")}`,
      );
    case "egress.rule_removed":
      return title(removedRule(text(data["rule"]), text(data["reason"]), data["verdict"] === "deny"));
    case "turn.started":
      return title(`Prompt: ${text(data["text"]) || "…"}`, `turn ${String(data["turn"])}`);
    case "tool.ended":
      return title(text(data["title"]) || "Tool ended", text(data["status"]));
    case "history.notice_given":
      return title(text(data["message"]), text(data["hint"]));
    case "history.marked_good":
      return title(`#${String(data["entry"])} marked as known good`);
    case "history.unmarked_good":
      return title(`#${String(data["entry"])} no longer marked as known good`);
    default:
      return title(kindText(kind), factsOf(event));
  }
}

function networkAnswer(target: string, answer: string): string {
  if (answer === "never") return `${target} denied, always`;
  if (answer.startsWith("by the rule 'deny")) return `${target} denied, ${answer}`;
  return `${target} allowed, ${reachOf(answer, "host")}`;
}

function removedRule(pattern: string, reason: string, isDeny: boolean): string {
  if (reason === "it was used") return `${pattern} connected, as allowed once`;
  const rule = `Rule removed: ${isDeny ? "deny" : "allow"} ${pattern}`;
  return reason === "the conversation ended" || reason === "Freehold restarted" ? `${rule} (${reason})` : rule;
}

/** `identity.token_created` → `Token created`. */
function kindText(kind: string): string {
  const [area = "", ...rest] = kind.split(".");
  const name = (rest.join(" ") || kind).replaceAll("_", " ");
  const whole = name.includes(area) || ["identity", "egress"].includes(area) ? name : `${area} ${name}`;
  return whole.charAt(0).toUpperCase() + whole.slice(1);
}

const MAX_FACT = 121;

function factsOf(event: RecordedEvent): string {
  return Object.entries(event.data)
    .filter(([, value]) => value !== null && value !== "")
    .map(([name, value]) => {
      const fact = typeof value === "object" ? JSON.stringify(value) : String(value);
      return `${name.replaceAll("_", " ")} ${shorten(fact, MAX_FACT)}`;
    })
    .join(" · ");
}
