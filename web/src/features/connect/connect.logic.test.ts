import { expect, test } from "vitest";
import { lastUseOf, leftOf, packed, privateKeyFile, publicLine, shownRows, type SshCredential } from "./connect.logic";

const PUBLIC = Uint8Array.from({ length: 32 }, (_, index) => index);
const SEED = Uint8Array.from({ length: 32 }, (_, index) => 255 - index);
const ROW: SshCredential = {
  id: "a",
  kind: "certificate",
  label: "",
  fingerprint: "SHA256:x",
  created: "2026-01-01T00:00:00Z",
  expires: "2026-01-02T00:00:00Z",
  used: null,
  used_from: null,
  revoked: false,
};

test("a public key is a line that begins as OpenSSH's do", () => {
  expect(publicLine(PUBLIC)).toMatch(/^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgME/);
});

test("a private key holds the seed and the public half, padded to eight bytes", () => {
  const lines = privateKeyFile(PUBLIC, SEED, 7).trim().split("\n");
  const bytes = Uint8Array.from(atob(lines.slice(1, -1).join("")), (letter) => letter.charCodeAt(0));
  expect(lines[0]).toBe("-----BEGIN OPENSSH PRIVATE KEY-----");
  expect(new TextDecoder().decode(bytes.slice(0, 14))).toBe("openssh-key-v1");
  const view = new DataView(bytes.buffer);
  const start = 15 + 8 + 8 + 4 + 4 + 4 + 51;
  expect(view.getUint32(start) % 8).toBe(0);
  expect(start + 4 + view.getUint32(start)).toBe(bytes.length);
  expect([view.getUint32(start + 4), view.getUint32(start + 8)]).toEqual([7, 7]);
});

test("an archive says which of its files are secret, and its sums are right", () => {
  const archive = packed([{ name: "freehold", text: "key", secret: true }, { name: "conf", text: "x".repeat(600) }], 0);
  expect(archive.length).toBe(512 + 512 + 512 + 1024 + 1024);
  const text = (from: number, size: number) => new TextDecoder().decode(archive.slice(from, from + size));
  expect(text(0, 8)).toBe("freehold");
  expect(text(100, 7)).toBe("0000600");
  expect(text(1024 + 100, 7)).toBe("0000644");
  const header = archive.slice(0, 512);
  header.fill(32, 148, 156);
  expect(parseInt(text(148, 6), 8)).toBe(header.reduce((sum, byte) => sum + byte, 0));
});

test.each([
  ["2026-01-02T00:00:00Z", "2026-01-01T00:30:00Z", "23 h 30 min left"],
  ["2026-01-02T00:00:00Z", "2026-01-01T23:58:30Z", "1 min 30 s left"],
  ["2026-01-02T00:00:00Z", "2026-01-01T23:59:57Z", "3 s left"],
  ["2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z", "ended"],
  ["nonsense", "2026-01-02T00:00:00Z", "ended"],
])("the time left of %s at %s is %s", (expires, now, words) => {
  expect(leftOf(expires, Date.parse(now))).toBe(words);
});

test("what opens the door comes before what was revoked, and what has ended is gone", () => {
  const revoked = { ...ROW, id: "b", revoked: true };
  const ended = { ...ROW, id: "c", expires: "2025-12-31T00:00:00Z" };
  const shown = shownRows([revoked, ended, ROW], Date.parse("2026-01-01T12:00:00Z"));
  expect(shown.map((row) => row.id)).toEqual(["a", "b"]);
});

test("the last use names its address", () => {
  expect(lastUseOf(ROW)).toBe("never used");
  expect(lastUseOf({ ...ROW, used: "2026-01-01T10:00:00Z", used_from: "192.0.2.1" })).toMatch(/from 192\.0\.2\.1$/);
});
