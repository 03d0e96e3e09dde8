import { expect, test } from "vitest";
import type { Slot } from "../../client/api";
import { placeText, SLOTS, slotFacts, stateOf } from "./slots.logic";

const slot: Slot = {
  name: "memory",
  mode: "local",
  implementation: "local",
  state: "ok",
  since: "2026-11-16T10:00:00Z",
  error: null,
  required: false,
  privacy: "off",
  contract: 1,
};

test("a slot says where it is kept", () => {
  expect(placeText(slot)).toBe("Kept in this home");
  expect(placeText({ ...slot, name: "orchestrator" })).toBe("Run on this machine");
  expect(placeText({ ...slot, mode: "external", implementation: "postgres" })).toBe("Kept in your PostgreSQL database");
  expect(placeText({ ...slot, mode: "external", implementation: "another" })).toBe("Kept by an external service");
  expect(placeText({ ...slot, mode: "off" })).toBe("Off");
});

test("a slot says what its privacy filter does, and whether it is required", () => {
  expect(slotFacts(slot)).toBe("Kept in this home · No privacy filter");
  expect(slotFacts({ ...slot, privacy: "soft" })).toContain("replaced by pseudonyms");
  expect(slotFacts({ ...slot, privacy: "strict", required: true })).toBe(
    "Kept in this home · Private data is refused · Required",
  );
});

test("every state has words", () => {
  for (const state of ["off", "starting", "ok", "unavailable"] as const)
    expect(stateOf({ ...slot, state }).text).not.toBe("");
  expect(new Set(SLOTS.map((one) => one.path)).size).toBe(5);
});
