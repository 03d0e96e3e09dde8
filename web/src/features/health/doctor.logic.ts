import type { Attempt, DoctorReport, DoctorState } from "../../client/api";

const ORDER: Record<Attempt["outcome"], number> = { escaped: 0, unclear: 1, refused: 2 };

/** What got out first; the rest in the order in which it was tried. */
export function inOrder(attempts: readonly Attempt[]): Attempt[] {
  return [...attempts].sort((a, b) => ORDER[a.outcome] - ORDER[b.outcome]);
}

export interface Headline {
  tone: "leaf" | "amber" | "alarm";
  words: string;
}

/** What the owner must know of the last examination, in a sentence. */
export function headlineOf(report: DoctorReport | null): Headline {
  if (report === null) return { tone: "amber", words: "The walls have not been tried on this machine yet." };
  if (report.missing_walls.length > 0) {
    return { tone: "alarm", words: `A wall cannot be built here: ${report.missing_walls.map((one) => one.wall).join(", ")}.` };
  }
  const open = report.attempts.filter((attempt) => attempt.outcome !== "refused").length;
  const all = report.attempts.length;
  if (open > 0) return { tone: "alarm", words: open === 1 ? `One of ${all} attempts was not refused.` : `${open} of ${all} attempts were not refused.` };
  if (report.problem !== null) return { tone: "alarm", words: `The last examination did not come to its end. ${report.problem}.` };
  if (report.manifest_errors.length > 0) return { tone: "alarm", words: "freehold.toml has errors." };
  return { tone: "leaf", words: `All ${all} attempts to break out were refused.` };
}

export interface Told {
  state: "begun" | "running" | "ended";
  done: number;
  total: number;
  latest: Attempt | null;
}

export function readTold(data: unknown): Told | null {
  if (typeof data !== "object" || data === null || !("state" in data)) return null;
  const told = data as Partial<Told>;
  if (told.state !== "begun" && told.state !== "running" && told.state !== "ended") return null;
  return { state: told.state, done: Number(told.done ?? 0), total: Number(told.total ?? 0), latest: told.latest ?? null };
}

/** The state after a word from the socket. A word that was heard before adds nothing. */
export function hear(state: DoctorState, told: Told): DoctorState {
  const running = state.running;
  if (running === null || told.state !== "running") return state;
  const known = running.attempts.length;
  const attempts = told.latest !== null && told.done === known + 1 ? [...running.attempts, told.latest] : running.attempts;
  return { ...state, running: { ...running, total: told.total, attempts } };
}

/** Whether attempts were missed, so that the list must be had anew. */
export function missedSome(state: DoctorState, told: Told): boolean {
  return state.running === null || told.state !== "running" || told.done > state.running.attempts.length + 1;
}
