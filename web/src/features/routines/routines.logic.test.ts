import { describe, expect, it } from "vitest";
import type { Routine, RoutineRun } from "../../client/api";
import {
  concernsRoutines,
  duration,
  EMPTY,
  formatCost,
  hasTimes,
  isOpen,
  markText,
  newRoutine,
  runWord,
  stateText,
  toneOf,
  triggerText,
  workText,
} from "./routines.logic";

function routine(changes: Partial<Routine>): Routine {
  return {
    name: "r",
    source: "owner",
    state: "on",
    reason: null,
    trigger: "every",
    work: "prompt",
    next: null,
    zone: "UTC",
    failures: 0,
    session: null,
    cost: 0,
    settings: { every: 1800, prompt: "x" },
    last: null,
    recent: [],
    ...changes,
  };
}

describe("routines", () => {
  it("says what it does, where its time counts, and nothing twice", () => {
    expect(workText(routine({ work: "command", settings: { command: "make" } }))).toBe("Command: make");
    const cron = routine({ trigger: "cron", settings: { cron: "0 7 * * *", zone: "Europe/Berlin" } });
    expect(triggerText(cron)).toBe("0 7 * * * (Europe/Berlin)");
    const hook = routine({ trigger: "webhook", settings: { webhook: true } });
    expect([stateText(hook), triggerText(hook)]).toEqual(["waits for a signed request", ""]);
    expect(triggerText({ ...hook, state: "paused" })).toBe("signed request");
  });

  it("knows which run can still be ended", () => {
    const run = { state: "parked", finished: null } as RoutineRun;
    expect([isOpen(null), isOpen(run), isOpen({ ...run, finished: "2026-06-01T07:00:00Z" })]).toEqual([
      false,
      true,
      false,
    ]);
  });

  it("sends only what was typed", () => {
    const draft = { ...EMPTY, name: " morning ", when: " 0 7 * * * ", what: "Report." };
    expect(newRoutine(draft)).toEqual({ name: "morning", routine: { cron: "0 7 * * *", prompt: "Report." } });
  });

  it("reads patterns, budgets with a comma and the policy for questions", () => {
    const typed = { trigger: "files", when: "a/*.pdf, b/**", work: "command", budget: "0,5", asks: "refuse" } as const;
    expect(newRoutine({ ...EMPTY, ...typed, name: "x", what: "make" }).routine).toEqual({
      files: ["a/*.pdf", "b/**"],
      command: "make",
      budget: 0.5,
      asks: "refuse",
    });
    expect(newRoutine({ ...EMPTY, trigger: "webhook", what: "x" }).routine).toEqual({ webhook: true, prompt: "x" });
  });

  it("shows times only for what begins at times", () => {
    expect(hasTimes({ ...EMPTY, when: "0 7 * * *" })).toBe(true);
    expect(hasTimes({ ...EMPTY, when: " " })).toBe(false);
    expect(hasTimes({ ...EMPTY, trigger: "webhook", when: "x" })).toBe(false);
  });

  it("says in words what a routine waits for", () => {
    expect(stateText(routine({ state: "paused" }))).toBe("paused");
    expect(stateText(routine({ next: "2026-06-01T07:00:00Z" }))).toMatch(/^next /);
    expect(stateText(routine({ trigger: "webhook" }))).toBe("waits for a signed request");
    expect(triggerText(routine({}))).toBe("every 30 min");
    expect(triggerText(routine({ trigger: "files", settings: { files: ["a", "b"] } }))).toBe("a, b");
    expect(triggerText(routine({ trigger: "webhook", settings: { webhook: true } }))).toBe("");
    expect([duration(86_400), duration(7_200), duration(90)]).toEqual(["1 d", "2 h", "90 s"]);
  });

  it("says of each mark what it stands for", () => {
    const mark = { id: "a", state: "done", due: "2026-06-01T07:00:00Z", cost: 0.5, quiet: true } as const;
    expect(runWord(mark)).toBe("nothing to report");
    expect(markText(mark)).toMatch(/^nothing to report, .*\$0\.50$/);
    expect([toneOf("failed"), toneOf("parked"), toneOf("done"), toneOf("skipped")]).toEqual([
      "alarm",
      "amber",
      "calm",
      "none",
    ]);
    expect(formatCost(0.0012)).toBe("$0.0012");
  });

  it("loads again after events of routines", () => {
    expect(concernsRoutines({ kind: "routine.run_done" })).toBe(true);
    expect(concernsRoutines({ kind: "turn.ended" })).toBe(false);
    expect(concernsRoutines(null)).toBe(false);
  });
});
