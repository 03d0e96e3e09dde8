// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, test } from "vitest";
import type { Routine, RoutineRun } from "../../client/api";
import { RoutineCard } from "./RoutineCard";

const RUN: RoutineRun = {
  id: "r1",
  number: 1,
  routine: "nightly",
  state: "done",
  cause: "manual:1",
  due: "2026-06-01T12:00:00Z",
  begin: "2026-06-01T12:00:00Z",
  attempt: 1,
  started: "2026-06-01T12:00:00Z",
  finished: "2026-06-01T12:00:01Z",
  session: null,
  turn: null,
  cost: null,
  quiet: false,
  result: null,
  error: null,
};
const ROUTINE: Routine = {
  name: "nightly",
  source: "owner",
  state: "on",
  reason: null,
  trigger: "every",
  work: "command",
  next: null,
  zone: "UTC",
  failures: 0,
  session: null,
  cost: 0,
  settings: { every: 3600, command: "make" },
  last: null,
  recent: [],
};

async function show(routine: Routine): Promise<string> {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.body.appendChild(document.createElement("div"));
  await act(async () =>
    createRoot(place).render(<RoutineCard routine={routine} busy={false} onAct={() => undefined} />),
  );
  return place.textContent ?? "";
}

test("what a run said and why it failed hide no characters", async () => {
  const hidden = "all\u202e well";
  expect(await show({ ...ROUTINE, last: { ...RUN, result: hidden } })).toContain("done – all⟨U+202E⟩ well");
  const failed = { ...ROUTINE, reason: hidden, last: { ...RUN, state: "failed" as const, error: hidden } };
  expect((await show(failed)).split("all⟨U+202E⟩ well")).toHaveLength(3);
});
