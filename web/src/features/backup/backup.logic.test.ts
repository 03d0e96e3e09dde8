import { describe, expect, it } from "vitest";
import type { BackupState } from "../../client/api";
import { factsOf, headlineOf, problemsOf } from "./backup.logic";

const AT = "2026-01-01T00:00:00Z";

function state(changes: Partial<BackupState>): BackupState {
  return {
    enabled: true,
    to: "s3://backups/freehold",
    after: 300,
    keep: { hourly: 24, daily: 14, weekly: 1 },
    state: "ok",
    trouble: null,
    running: null,
    pending: null,
    stored: 2_000_000,
    last: { number: 3, at: AT, checked: AT, files: 2, total: 1_000_000, added: 10, notes: [] },
    failure: null,
    verification: { at: AT, problems: [], packs: 4, all_packs: 9, number: null },
    rehearsal: null,
    recovery_key: { recipient: "age1x", made: AT, tried: null },
    ...changes,
  };
}

describe("backups", () => {
  it("says in one sentence how it is", () => {
    expect(headlineOf(state({})).tone).toBe("leaf");
    expect(headlineOf(state({ pending: AT })).text).toContain("wait for the next backup");
    expect(headlineOf(state({ running: "verify" })).text).toContain("read back");
    expect(headlineOf(state({ state: "failing" })).tone).toBe("alarm");
    expect(headlineOf(state({ state: "warning" })).tone).toBe("amber");
    expect(headlineOf(state({ recovery_key: null, state: "warning" })).text).toContain("not set up");
    expect(headlineOf(state({ last: null })).text).toContain("no backup yet");
  });

  it("lists the place, the last backup, its checks and the recovery key", () => {
    const facts = Object.fromEntries(factsOf(state({})));
    expect(facts.Place).toBe("s3://backups/freehold");
    expect(facts["Last backup"]).toContain("number 3");
    expect(facts.Verified).toContain("4 of 9 packs read, no problems");
    expect(facts["Restore tried"]).toBe("not yet");
    expect(facts["Recovery key"]).toContain("never tried");
    expect(facts.Kept).toBe("24 hours, 14 days, 1 week");
  });

  it("shows every problem that was found", () => {
    const check = { at: AT, problems: ["pack 1 is missing"], packs: 1, all_packs: 1, number: 2 };
    expect(problemsOf(state({ verification: check, rehearsal: { ...check, problems: ["timeline"] } }))).toEqual([
      "pack 1 is missing",
      "timeline",
    ]);
    expect(problemsOf(state({ verification: null }))).toEqual([]);
  });
});
