import { expect, test } from "vitest";
import type { ProgramInfo } from "../../client/api";
import {
  formatDuration,
  programDescription,
  programError,
  programFacts,
  programTitle,
  restartWarning,
  sleepFacts,
  toneOf,
} from "./programs.logic";

const program: ProgramInfo = {
  name: "ssh",
  state: "ready",
  required: false,
  pid: 12,
  since: "1970-01-01T00:16:40Z",
  restarts: 0,
  memory: 54e6,
  last_error: null,
  next_start_in: null,
  can_restart: true,
};

test("the facts of a program are those that are known", () => {
  expect(programFacts(program, 1000 + 3 * 3600)).toBe("pid 12 · for 3 h · 54 MB");
  const waiting = { ...program, pid: null, memory: null, restarts: 5, next_start_in: 4.2 };
  expect(programFacts(waiting, 1030)).toBe("for 30 s · restarted 5 times · starts again in 4 s");
  expect(programFacts({ ...program, restarts: 1 }, 1000)).toContain("restarted once");
});

test("an error is shown while it matters", () => {
  const said = { ...program, last_error: "exited with 1" };
  expect(programError(said)).toBeNull();
  expect(programError({ ...said, state: "idle" })).toBeNull();
  expect(programError({ ...said, state: "crash-looping" })).toBe("exited with 1");
  expect(programError({ ...said, state: "starting" })).toBeNull();
  expect(programError({ ...said, state: "starting", restarts: 1 })).toBe("exited with 1");
  expect(programError({ ...said, name: "keeper" })).toBe("exited with 1");
});

test("every state has a tone, and a restart that interrupts something warns first", () => {
  expect(toneOf(program)).toBe("leaf");
  expect(toneOf({ ...program, state: "waiting" })).toBe("amber");
  expect(toneOf({ ...program, state: "crash-looping" })).toBe("alarm");
  expect(restartWarning("computer")).toContain("Ends");
  expect(restartWarning("service-web")).toBeNull();
  expect(programTitle("service-web")).toBe("web");
  expect(programDescription("service-web")).toBe("a service in the computer");
  expect([formatDuration(5), formatDuration(90), formatDuration(86_400), formatDuration(200_000)]).toEqual([
    "5 s",
    "1 min",
    "1 day",
    "2 days",
  ]);
});

test("a sleep says how long it lasts and what it saves", () => {
  const awake = { after: 1800, asleep: false, since: null, given_back: null, times: 0, seconds: 0, trouble: null };
  expect(sleepFacts(null, 0)).toBeNull();
  expect(sleepFacts(awake, 0)).toBe("Sleeps after 30 min without use");
  expect(sleepFacts({ ...awake, times: 2, seconds: 7200 }, 0)).toBe(
    "Sleeps after 30 min without use · slept 2 h so far",
  );
  const asleep = { ...awake, asleep: true, since: "1970-01-01T00:16:40Z", given_back: 200e6, times: 1 };
  expect(sleepFacts(asleep, 1000 + 3 * 3600)).toBe(
    "Asleep for 3 h · 200 MB of memory given back · wakes when it is used",
  );
  expect(sleepFacts({ ...awake, trouble: "The computer cannot sleep" }, 0)).toBe("The computer cannot sleep");
});
