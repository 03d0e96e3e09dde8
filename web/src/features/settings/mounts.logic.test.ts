import { expect, test } from "vitest";
import type { MountState } from "../../client/api";
import { mountFacts, mountTone } from "./mounts.logic";

const mount: MountState = {
  kind: "s3",
  source: "photos/2026",
  target: "/mnt/photos",
  writable: false,
  state: "ready",
  words: "",
};

test("a mount says its kind, its source and whether agents may change it", () => {
  expect(mountFacts(mount)).toBe("S3 · photos/2026 · read-only");
  expect(mountFacts({ ...mount, kind: "solid", source: "notes/" })).toBe("Solid pod · notes/ · read-only");
  expect(mountFacts({ ...mount, kind: "memory", source: "" })).toBe("In memory · writable");
});

test("a mount that does not work is shown as an alarm", () => {
  expect(mountTone(mount)).toBe("leaf");
  expect(mountTone({ ...mount, state: "starting" })).toBe("amber");
  expect(mountTone({ ...mount, state: "failing" })).toBe("alarm");
  expect(mountTone({ ...mount, state: "down" })).toBe("alarm");
});
