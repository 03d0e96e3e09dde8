import { expect, test } from "vitest";
import { privateKeyFile, publicLine, tarArchive } from "./sshKeyFile.logic";

const PUBLIC = Uint8Array.from({ length: 32 }, (_, index) => index);
const SEED = Uint8Array.from({ length: 32 }, (_, index) => 255 - index);

test("a public key is a line in the format of OpenSSH", () => {
  expect(publicLine(PUBLIC)).toMatch(/^ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgME/);
});

test("a private key contains the seed and the public key, padded to eight bytes", () => {
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

test("an archive has the right modes and checksums", () => {
  const archive = tarArchive(
    [
      { name: "freehold", text: "key", secret: true },
      { name: "conf", text: "x".repeat(600) },
    ],
    0,
  );
  expect(archive.length).toBe(512 + 512 + 512 + 1024 + 1024);
  const text = (from: number, size: number) => new TextDecoder().decode(archive.slice(from, from + size));
  expect(text(0, 8)).toBe("freehold");
  expect(text(100, 7)).toBe("0000600");
  expect(text(1024 + 100, 7)).toBe("0000644");
  const header = archive.slice(0, 512);
  header.fill(32, 148, 156);
  expect(parseInt(text(148, 6), 8)).toBe(header.reduce((sum, byte) => sum + byte, 0));
});
