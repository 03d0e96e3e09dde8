import { expect, test } from "vitest";
import type { SshCredential } from "../../client/api";
import { lastUse, timeLeft, visibleRows } from "./ssh.logic";

const ROW: SshCredential = {
  id: "a",
  kind: "certificate",
  label: "",
  key_id: "k",
  fingerprint: "SHA256:x",
  created: "2026-01-01T00:00:00Z",
  expires: "2026-01-02T00:00:00Z",
  used: null,
  used_from: null,
  revoked: false,
};

test.each([
  ["2026-01-02T00:00:00Z", "2026-01-01T00:30:00Z", "23 h 30 min left"],
  ["2026-01-02T00:00:00Z", "2026-01-01T23:58:30Z", "1 min 30 s left"],
  ["2026-01-02T00:00:00Z", "2026-01-01T23:59:57Z", "3 s left"],
  ["2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z", "expired"],
  ["nonsense", "2026-01-02T00:00:00Z", "expired"],
])("the time left of %s at %s is %s", (expires, now, words) => {
  expect(timeLeft(expires, Date.parse(now))).toBe(words);
});

test("valid keys come before revoked ones, and expired ones are left out", () => {
  const revoked = { ...ROW, id: "b", revoked: true };
  const ended = { ...ROW, id: "c", expires: "2025-12-31T00:00:00Z" };
  const shown = visibleRows([revoked, ended, ROW], Date.parse("2026-01-01T12:00:00Z"));
  expect(shown.map((row) => row.id)).toEqual(["a", "b"]);
});

test("the last use has its address", () => {
  expect(lastUse(ROW)).toBe("never used");
  expect(lastUse({ ...ROW, used: "2026-01-01T10:00:00Z", used_from: "192.0.2.1" })).toMatch(/from 192\.0\.2\.1$/);
});
