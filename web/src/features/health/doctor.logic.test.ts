import { expect, test } from "vitest";
import type { DoctorReport, DoctorState, EscapeAttempt } from "../../client/api";
import { headlineOf, readProgress, sortAttempts, withProgress } from "./doctor.logic";

const held: EscapeAttempt = { name: "host-file", claim: "reads a file", outcome: "refused", seen: "ENOENT" };
const out: EscapeAttempt = { name: "network", claim: "gets out", outcome: "escaped", seen: "1.1.1.1" };
const report: DoctorReport = {
  at: "2026-11-15T09:00:00Z",
  who: "owner",
  quick: false,
  seconds: 4,
  ok: true,
  problem: null,
  facts: {},
  missing_walls: [],
  manifest_errors: [],
  isolation: null,
  attempts: [held],
};

test("the headline is good only when every attempt was refused", () => {
  expect(headlineOf(null).tone).toBe("amber");
  expect(headlineOf(report)).toEqual({ tone: "leaf", text: "All 1 escape attempts were refused." });
  expect(headlineOf({ ...report, attempts: [held, out] })).toEqual({
    tone: "alarm",
    text: "1 of 2 escape attempts was not refused.",
  });
  expect(headlineOf({ ...report, attempts: [{ ...held, outcome: "unclear" }] }).tone).toBe("alarm");
  expect(headlineOf({ ...report, problem: "The doctor ended with exit code 1" }).tone).toBe("alarm");
  expect(headlineOf({ ...report, missing_walls: [{ wall: "pid namespace", message: "", hint: "" }] }).text).toContain(
    "pid namespace",
  );
  expect(headlineOf({ ...report, manifest_errors: ["E1"] }).tone).toBe("alarm");
  const tried = { name: "browser", adds: ["Devices: none"], is_right: true, seen: "It showed a page" };
  expect(headlineOf({ ...report, exceptions: [tried] }).tone).toBe("leaf");
  expect(headlineOf({ ...report, exceptions: [{ ...tried, is_right: false }] })).toEqual({
    tone: "alarm",
    text: "All 1 escape attempts were refused. Not working: browser.",
  });
});

test("attempts that succeeded come first", () => {
  expect(sortAttempts([held, out]).map((one) => one.name)).toEqual(["network", "host-file"]);
});

test("an event adds each attempt once, and a gap asks for the whole state", () => {
  const state: DoctorState = {
    running: { since: "2026-11-15T09:00:00Z", quick: false, total: 0, attempts: [] },
    last: null,
  };
  const progress = readProgress({ state: "running", done: 1, total: 2, latest: held })!;
  const after = withProgress(state, progress)!;
  expect(after.running).toMatchObject({ total: 2, attempts: [held] });
  expect(withProgress(after, progress)?.running?.attempts).toEqual([held]);
  expect(withProgress(state, { ...progress, done: 2 })).toBeNull();
  expect(withProgress({ running: null, last: null }, progress)).toBeNull();
  expect(readProgress({ state: "rumour" })).toBeNull();
  expect(readProgress(null)).toBeNull();
});
