/** Where the SSH server is (`GET /v1/ssh`). */
export interface SshDoor {
  enabled: boolean;
  host: string;
  port: number;
  user: string;
  fingerprint: string;
  known_hosts: string;
  forwarding: boolean;
  connected: number | null;
}

/** A key that was given out (`GET /v1/ssh/certificates`). */
export interface SshCredential {
  id: string;
  kind: "certificate" | "key";
  label: string;
  fingerprint: string;
  created: string;
  expires: string;
  used: string | null;
  used_from: string | null;
  revoked: boolean;
}

/** What the server answers to a public key. */
export interface SshCertificate {
  id: string;
  certificate: string;
  expires: string;
  known_hosts: string;
  config: string;
}

/** A pair that the server made, for browsers that cannot. */
export interface SshKey {
  id: string;
  private_key: string;
  expires: string;
  known_hosts: string;
  config: string;
}

export interface PackedFile {
  name: string;
  text: string;
  secret?: boolean;
}

const KIND = "ssh-ed25519";
const encoder = new TextEncoder();

function joined(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function number(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}

function field(value: Uint8Array | string): Uint8Array {
  const bytes = typeof value === "string" ? encoder.encode(value) : value;
  return joined(number(bytes.length), bytes);
}

function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

function publicBlob(publicKey: Uint8Array): Uint8Array {
  return joined(field(KIND), field(publicKey));
}

/** An Ed25519 public key as a line of `id_ed25519.pub`. */
export function publicLine(publicKey: Uint8Array): string {
  return `${KIND} ${base64(publicBlob(publicKey))}`;
}

/** The pair in the format of OpenSSH's private keys. `check` is any number; it lets a reader see a wrong passphrase. */
export function privateKeyFile(publicKey: Uint8Array, seed: Uint8Array, check: number): string {
  const inner = joined(
    number(check),
    number(check),
    field(KIND),
    field(publicKey),
    field(joined(seed, publicKey)),
    field("freehold"),
  );
  const padding = Uint8Array.from({ length: (8 - (inner.length % 8)) % 8 }, (_, index) => index + 1);
  const whole = joined(
    encoder.encode("openssh-key-v1\0"),
    field("none"),
    field("none"),
    field(""),
    number(1),
    field(publicBlob(publicKey)),
    field(joined(inner, padding)),
  );
  const lines = base64(whole).match(/.{1,70}/g) ?? [];
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join("\n")}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

function octal(value: number, width: number): string {
  return value.toString(8).padStart(width - 1, "0") + "\0";
}

/** One file to download: an archive keeps the key readable for its owner alone, as ssh demands. */
export function packed(files: PackedFile[], now: number): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  for (const file of files) {
    const body = encoder.encode(file.text);
    const header = new Uint8Array(512);
    const put = (text: string, at: number) => header.set(encoder.encode(text), at);
    put(file.name, 0);
    put(octal(file.secret === true ? 0o600 : 0o644, 8), 100);
    put(octal(0, 8), 108);
    put(octal(0, 8), 116);
    put(octal(body.length, 12), 124);
    put(octal(Math.floor(now / 1000), 12), 136);
    put("        ", 148);
    put("0", 156);
    put("ustar\u000000", 257);
    put(octal(header.reduce((sum, byte) => sum + byte, 0), 7) + " ", 148);
    parts.push(header, body, new Uint8Array((512 - (body.length % 512)) % 512));
  }
  return joined(...parts, new Uint8Array(1024));
}

/** How long a key still lives, in words that change each second only near its end. */
export function leftOf(expires: string, now: number): string {
  const seconds = Math.floor((Date.parse(expires) - now) / 1000);
  if (!(seconds > 0)) return "ended";
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours > 0) return `${hours} h ${minutes} min left`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s left` : `${seconds} s left`;
}

export function lastUseOf(row: SshCredential): string {
  if (row.used === null) return "never used";
  const moment = new Date(row.used).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  return `last used ${moment} from ${row.used_from ?? "somewhere"}`;
}

/** Those that still open the door come first; what has ended is not shown. */
export function shownRows(rows: SshCredential[], now: number): SshCredential[] {
  const alive = rows.filter((row) => Date.parse(row.expires) > now);
  return [...alive.filter((row) => !row.revoked), ...alive.filter((row) => row.revoked)];
}

export const UNPACK = "tar -xf ~/Downloads/freehold-ssh.tar -C ~/.ssh";
export const TRY = "ssh -F ~/.ssh/freehold.conf freehold";
