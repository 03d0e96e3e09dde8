import type { DoctorReport, DoctorState, EscapeAttempt } from "../../client/api";

const ORDER: Record<EscapeAttempt["outcome"], number> = { escaped: 0, unclear: 1, refused: 2 };

/** The attempts that succeeded first, the others in the order in which they were made. */
export function sortAttempts(attempts: readonly EscapeAttempt[]): EscapeAttempt[] {
  return [...attempts].sort((a, b) => ORDER[a.outcome] - ORDER[b.outcome]);
}

export interface Headline {
  tone: "leaf" | "amber" | "alarm";
  text: string;
}

/** The result of the last check in a sentence. */
export function headlineOf(report: DoctorReport | null): Headline {
  if (report === null) return { tone: "amber", text: "The isolation was not tested on this machine yet." };
  if (report.missing_walls.length > 0) {
    const missing = report.missing_walls.map((one) => one.wall).join(", ");
    return { tone: "alarm", text: `This machine lacks a part of the isolation: ${missing}.` };
  }
  const total = report.attempts.length;
  const open = report.attempts.filter((attempt) => attempt.outcome !== "refused").length;
  if (open > 0) {
    return { tone: "alarm", text: `${open} of ${total} escape attempts ${open === 1 ? "was" : "were"} not refused.` };
  }
  if (report.problem !== null) return { tone: "alarm", text: `The last check did not finish. ${report.problem}.` };
  if (report.manifest_errors.length > 0) return { tone: "alarm", text: "freehold.toml has errors." };
  const broken = (report.exceptions ?? []).filter((one) => !one.is_right).map((one) => one.name);
  if (broken.length > 0) {
    return { tone: "alarm", text: `All ${total} escape attempts were refused. Not working: ${broken.join(", ")}.` };
  }
  return { tone: "leaf", text: `All ${total} escape attempts were refused.` };
}

export interface DoctorProgress {
  state: "begun" | "running" | "ended";
  done: number;
  total: number;
  latest: EscapeAttempt | null;
}

export function readProgress(event: unknown): DoctorProgress | null {
  if (typeof event !== "object" || event === null || !("state" in event)) return null;
  const progress = event as Partial<DoctorProgress>;
  if (progress.state !== "begun" && progress.state !== "running" && progress.state !== "ended") return null;
  return {
    state: progress.state,
    done: Number(progress.done ?? 0),
    total: Number(progress.total ?? 0),
    latest: progress.latest ?? null,
  };
}

/** The state after an event. Null when attempts were missed and the state must be fetched again. */
export function withProgress(state: DoctorState, progress: DoctorProgress): DoctorState | null {
  const { running } = state;
  if (running === null || progress.state !== "running") return null;
  const known = running.attempts.length;
  if (progress.done > known + 1) return null;
  const isNew = progress.latest !== null && progress.done === known + 1;
  const attempts = isNew && progress.latest !== null ? [...running.attempts, progress.latest] : running.attempts;
  return { ...state, running: { ...running, total: progress.total, attempts } };
}
