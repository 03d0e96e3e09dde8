import type { AddRoutine, Routine, RoutineRun, RoutineRunMark } from "../../client/api";
import { formatDateTime } from "../../ui/format";

export type Trigger = "cron" | "every" | "at" | "files" | "webhook" | "event" | "after" | "message";
export type Work = "prompt" | "command" | "checklist" | "workflow";

export const TRIGGERS: Readonly<Record<Trigger, { label: string; placeholder: string }>> = {
  cron: { label: "At times (cron)", placeholder: "0 7 * * MON-FRI" },
  every: { label: "Again and again", placeholder: "30m" },
  at: { label: "Once", placeholder: "2027-01-01T09:00" },
  files: { label: "A file changed", placeholder: "inbox/*.pdf" },
  webhook: { label: "A signed request", placeholder: "" },
  event: { label: "An event", placeholder: "org.example.order.*" },
  after: { label: "After a routine or session", placeholder: "routine:fetch" },
  message: { label: "A message of yours", placeholder: "*" },
};

export const WORKS: Readonly<Record<Work, { label: string; placeholder: string }>> = {
  prompt: { label: "Prompt", placeholder: "Report what changed since yesterday." },
  command: { label: "Command", placeholder: "make -C site nightly" },
  checklist: { label: "Checklist", placeholder: "HEARTBEAT.md" },
  workflow: { label: "Workflow", placeholder: "flows/nightly.py" },
};

/** What the form holds, as it was typed. */
export interface Draft {
  name: string;
  trigger: Trigger;
  when: string;
  zone: string;
  work: Work;
  what: string;
  budget: string;
  hours: string;
  asks: "park" | "refuse";
}

export const EMPTY: Draft = {
  name: "",
  trigger: "cron",
  when: "",
  zone: "",
  work: "prompt",
  what: "",
  budget: "",
  hours: "",
  asks: "park",
};

/** The body that adds the routine. What is empty is left to its default. */
export function newRoutine(draft: Draft): AddRoutine {
  const routine: AddRoutine["routine"] = { [draft.work]: draft.what.trim() };
  const when = draft.when.trim();
  if (draft.trigger === "files") routine.files = when.split(/[\s,]+/).filter((one) => one !== "");
  else if (draft.trigger === "webhook") routine.webhook = true;
  else routine[draft.trigger] = when;
  if (draft.zone.trim() !== "") routine.zone = draft.zone.trim();
  if (draft.hours.trim() !== "") routine.hours = draft.hours.trim();
  if (draft.budget.trim() !== "") routine.budget = Number(draft.budget.replace(",", "."));
  if (draft.asks !== "park") routine.asks = draft.asks;
  return { name: draft.name.trim(), routine };
}

/** Whether the times of a draft can be shown before it is added. */
export function hasTimes(draft: Draft): boolean {
  return (draft.trigger === "cron" || draft.trigger === "every" || draft.trigger === "at") && draft.when.trim() !== "";
}

const RUN_WORDS: Readonly<Record<RoutineRun["state"], string>> = {
  due: "due",
  started: "working",
  parked: "waits for you",
  done: "done",
  failed: "failed",
  uncertain: "uncertain",
  skipped: "skipped",
  cancelled: "ended",
};

export function runWord(run: { state: RoutineRun["state"]; quiet: boolean }): string {
  return run.state === "done" && run.quiet ? "nothing to report" : RUN_WORDS[run.state];
}

/** How a run is coloured; a strip is not read by colour alone, because each mark has its words. */
export function toneOf(state: RoutineRun["state"]): "calm" | "amber" | "alarm" | "none" {
  if (state === "failed") return "alarm";
  if (state === "parked" || state === "uncertain") return "amber";
  return state === "done" || state === "started" ? "calm" : "none";
}

export function markText(mark: RoutineRunMark): string {
  const cost = mark.cost === null ? "" : `, ${formatCost(mark.cost)}`;
  return `${runWord(mark)}, ${formatDateTime(Date.parse(mark.due) / 1000)}${cost}`;
}

export function formatCost(cost: number): string {
  return cost === 0 || cost >= 0.01 ? `$${cost.toFixed(2)}` : `$${cost.toFixed(4)}`;
}

export function stateText(routine: Routine): string {
  if (routine.state === "paused") return "paused";
  if (routine.state === "over") return "its time has passed";
  if (routine.next !== null) return `next ${formatDateTime(Date.parse(routine.next) / 1000)}`;
  return `waits for ${TRIGGERS[routine.trigger].label.toLowerCase()}`;
}

/** What began it, in the owner's own words. */
export function triggerText(routine: Routine): string {
  const value = routine.settings[routine.trigger];
  if (routine.trigger === "every" && typeof value === "number") return `every ${duration(value)}`;
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value !== "string") return routine.state === "on" ? "" : "signed request"; // its state says it otherwise
  return typeof routine.settings.zone === "string" ? `${value} (${routine.settings.zone})` : value;
}

/** What it does, in the owner's own words. */
export function workText(routine: Routine): string {
  return `${WORKS[routine.work].label}: ${String(routine.settings[routine.work] ?? "")}`;
}

/** Whether a run can still be ended. */
export function isOpen(run: RoutineRun | null): run is RoutineRun {
  return run !== null && run.finished === null;
}

export function duration(seconds: number): string {
  const units: [number, string][] = [
    [86_400, "d"],
    [3_600, "h"],
    [60, "min"],
  ];
  for (const [size, unit] of units) if (seconds % size === 0) return `${seconds / size} ${unit}`;
  return `${seconds} s`;
}

/** Whether an event of the timeline concerns the routines. */
export function concernsRoutines(event: unknown): boolean {
  const kind = (event as { kind?: unknown } | null)?.kind;
  return typeof kind === "string" && kind.startsWith("routine.");
}
