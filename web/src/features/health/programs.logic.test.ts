import { expect, test } from "vitest";
import type { ProgramRow } from "../../client/api";
import { costOfRestart, factsOf, meaningOf, span, titleOf, toneOf, troubleWith } from "./programs.logic";

const program: ProgramRow = {
  name: "ssh",
  state: "ready",
  required: false,
  pid: 12,
  since: 1000,
  restarts: 0,
  memory: 54e6,
  last_error: null,
  next_start_in: null,
  can_restart: true,
};

test("a program is described by what is known of it", () => {
  expect(factsOf(program, 1000 + 3 * 3600)).toBe("pid 12 · for 3 h · 54 MB");
  const waiting = { ...program, pid: null, memory: null, restarts: 5, next_start_in: 4.2 };
  expect(factsOf(waiting, 1030)).toBe("for 30 s · restarted 5 times · tried again in 4 s");
  expect(factsOf({ ...program, restarts: 1 }, 1000)).toContain("restarted once");
});

test("trouble is told while it matters", () => {
  const said = { ...program, last_error: "exited with 1" };
  expect(troubleWith(said)).toBeNull();
  expect(troubleWith({ ...said, state: "crash-looping" })).toBe("exited with 1");
  expect(troubleWith({ ...said, state: "starting" })).toBeNull();
  expect(troubleWith({ ...said, state: "starting", restarts: 1 })).toBe("exited with 1");
  expect(troubleWith({ ...said, name: "keeper" })).toBe("exited with 1");
});

test("every state has a tone, and what ends something asks first", () => {
  expect(toneOf(program)).toBe("leaf");
  expect(toneOf({ ...program, state: "waiting" })).toBe("amber");
  expect(toneOf({ ...program, state: "crash-looping" })).toBe("alarm");
  expect(costOfRestart("computer")).toContain("Ends");
  expect(costOfRestart("service-web")).toBeNull();
  expect(titleOf("service-web")).toBe("web");
  expect(meaningOf("service-web")).toBe("a service in the computer");
  expect([span(5), span(90), span(86_400), span(200_000)]).toEqual(["5 s", "1 min", "a day", "2 days"]);
});
