import type { Workflow, WorkflowStep } from "../../client/api";
import { formatDateTime } from "../../ui/format";

export type Tone = "calm" | "amber" | "alarm" | "none";

const WORDS: Readonly<Record<Workflow["state"], string>> = {
  due: "about to work",
  working: "working",
  waiting: "waiting",
  done: "done",
  failed: "failed",
  uncertain: "uncertain",
  changed: "stopped: it has changed",
  cancelled: "ended",
};

export function stateWord(workflow: Workflow): string {
  return WORDS[workflow.state];
}

export function toneOf(state: Workflow["state"] | WorkflowStep["state"]): Tone {
  if (state === "failed") return "alarm";
  if (state === "waiting" || state === "uncertain" || state === "changed") return "amber";
  return state === "done" || state === "working" || state === "begun" ? "calm" : "none";
}

/** How a step is going, in words. */
export function stepWord(step: WorkflowStep): string {
  if (step.state === "begun") return "working";
  if (step.state !== "waiting") return step.state === "cancelled" ? "ended" : step.state;
  if (step.kind === "ask") return "waits for your answer";
  if (step.kind === "agent") return "waits for your permission";
  if (step.kind === "event") return "waits for an event";
  return step.wake === null ? "waits" : `waits until ${formatDateTime(Date.parse(step.wake) / 1000)}`;
}

/** How long it took, in words; empty while it goes on. */
export function timeText(step: WorkflowStep): string {
  if (step.finished === null) return "";
  const seconds = (Date.parse(step.finished) - Date.parse(step.begun)) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return seconds < 3600 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

export function canRetry(workflow: Workflow): boolean {
  return workflow.finished !== null && workflow.run === null;
}

/** A result as it is shown. */
export function showValue(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** What a step gave: of a command its output, and its exit code only when that is a failure. */
export function showResult(step: WorkflowStep): string {
  const found = step.result as { code?: unknown; output?: unknown } | null;
  if (found === null) return "";
  if (step.kind !== "command" || typeof found.code !== "number" || typeof found.output !== "string")
    return showValue(step.result);
  return [found.output.trimEnd(), found.code === 0 ? "" : `exit code ${found.code}`].filter((one) => one).join("\n");
}

/** The title of a step. What has several lines, such as a question with a diff, is shown below it as it is. */
export function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}

/** Whether an event of the timeline concerns the workflows. */
export function concernsWorkflows(event: unknown): boolean {
  const kind = (event as { kind?: unknown } | null)?.kind;
  return typeof kind === "string" && kind.startsWith("workflow.");
}
