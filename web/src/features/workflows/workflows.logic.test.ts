import { describe, expect, it } from "vitest";
import type { Workflow, WorkflowStep } from "../../client/api";
import {
  canRetry,
  concernsWorkflows,
  firstLine,
  showResult,
  showValue,
  stateWord,
  stepWord,
  timeText,
  toneOf,
} from "./workflows.logic";

function step(changes: Partial<WorkflowStep>): WorkflowStep {
  return {
    place: "1",
    kind: "step",
    title: "fetch",
    state: "done",
    attempt: 1,
    begun: "2026-06-01T07:00:00Z",
    finished: "2026-06-01T07:00:01.500Z",
    wake: null,
    session: null,
    turn: null,
    cost: null,
    question: null,
    choices: [],
    result: null,
    error: null,
    entry: null,
    files: [],
    files_total: 0,
    ...changes,
  };
}

const workflow = { state: "changed", finished: "2026-06-01T07:00:00Z", run: null } as Workflow;

describe("workflows", () => {
  it("shows the output of a command, and its exit code only when it failed", () => {
    const command = { kind: "command" } as const;
    expect(showResult(step({ ...command, result: { code: 0, output: "made\n" } }))).toBe("made");
    expect(showResult(step({ ...command, result: { code: 0, output: "" } }))).toBe("");
    expect(showResult(step({ ...command, result: { code: 3, output: "no" } }))).toBe("no\nexit code 3");
    expect(showResult(step({ result: { code: 0, output: "x" } }))).toContain('"code": 0');
    expect(showResult(step({ result: null }))).toBe("");
  });

  it("names a step by its first line only", () => {
    expect(firstLine("Commit this?\n one.txt | 2 +-")).toBe("Commit this?");
  });

  it("says what a step waits for", () => {
    expect(stepWord(step({}))).toBe("done");
    expect(stepWord(step({ state: "begun" }))).toBe("working");
    expect(stepWord(step({ state: "waiting", kind: "ask" }))).toBe("waits for your answer");
    expect(stepWord(step({ state: "waiting", kind: "agent" }))).toBe("waits for your permission");
    expect(stepWord(step({ state: "waiting", kind: "event" }))).toBe("waits for an event");
    expect(stepWord(step({ state: "waiting", kind: "sleep", wake: "2026-06-01T07:00:00Z" }))).toMatch(/^waits until /);
    expect(stepWord(step({ state: "waiting", kind: "sleep" }))).toBe("waits");
    expect(stepWord(step({ state: "cancelled" }))).toBe("ended");
  });

  it("says how long a step took", () => {
    expect(timeText(step({}))).toBe("1.5 s");
    expect(timeText(step({ finished: null }))).toBe("");
    expect(timeText(step({ finished: "2026-06-01T07:05:00Z" }))).toBe("5 min");
    expect(timeText(step({ finished: "2026-06-04T07:00:00Z" }))).toBe("72.0 h");
  });

  it("offers another try only for what has ended and belongs to no routine", () => {
    expect(canRetry(workflow)).toBe(true);
    expect(canRetry({ ...workflow, finished: null })).toBe(false);
    expect(canRetry({ ...workflow, run: "abc" })).toBe(false);
    expect(stateWord(workflow)).toBe("stopped: it has changed");
  });

  it("colours by state, shows values and reads events", () => {
    expect([toneOf("failed"), toneOf("waiting"), toneOf("done"), toneOf("cancelled")]).toEqual([
      "alarm",
      "amber",
      "calm",
      "none",
    ]);
    expect(showValue("x")).toBe("x");
    expect(showValue({ a: 1 })).toBe('{\n  "a": 1\n}');
    expect(concernsWorkflows({ kind: "workflow.asked" })).toBe(true);
    expect(concernsWorkflows({ kind: "routine.added" })).toBe(false);
  });
});
