import { expect, test } from "vitest";
import type { Attempt, DoctorReport, DoctorState } from "../../client/api";
import { headlineOf, hear, inOrder, missedSome, readTold } from "./doctor.logic";

const held: Attempt = { name: "host-file", claim: "reads a file", outcome: "refused", seen: "ENOENT" };
const out: Attempt = { name: "network", claim: "gets out", outcome: "escaped", seen: "1.1.1.1" };
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

test("the headline never praises what did not hold", () => {
  expect(headlineOf(null).tone).toBe("amber");
  expect(headlineOf(report)).toEqual({ tone: "leaf", words: "All 1 attempts to break out were refused." });
  expect(headlineOf({ ...report, attempts: [held, out] })).toEqual({ tone: "alarm", words: "One of 2 attempts was not refused." });
  expect(headlineOf({ ...report, attempts: [{ ...held, outcome: "unclear" }] }).tone).toBe("alarm");
  expect(headlineOf({ ...report, problem: "It ended with 1" }).tone).toBe("alarm");
  expect(headlineOf({ ...report, missing_walls: [{ wall: "pid namespace", message: "", hint: "" }] }).words).toContain("pid namespace");
  expect(headlineOf({ ...report, manifest_errors: ["E1"] }).tone).toBe("alarm");
});

test("what got out stands first", () => {
  expect(inOrder([held, out]).map((one) => one.name)).toEqual(["network", "host-file"]);
});

test("words from the socket add each attempt once, and a gap is noticed", () => {
  const state: DoctorState = { running: { since: 0, quick: false, total: 0, attempts: [] }, last: null };
  const told = readTold({ state: "running", done: 1, total: 2, latest: held });
  expect(told).not.toBeNull();
  if (told === null) return;
  const after = hear(state, told);
  expect(after.running).toMatchObject({ total: 2, attempts: [held] });
  expect(hear(after, told).running?.attempts).toEqual([held]);
  expect(missedSome(after, told)).toBe(false);
  expect(missedSome(state, { ...told, done: 2 })).toBe(true);
  expect(missedSome({ running: null, last: null }, told)).toBe(true);
  expect(readTold({ state: "rumour" })).toBeNull();
  expect(readTold(null)).toBeNull();
});
