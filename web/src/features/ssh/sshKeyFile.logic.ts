/** A file of the archive. A secret one is readable for its owner only. */
export interface ArchiveFile {
  name: string;
  text: string;
  secret?: boolean;
}

const KIND = "ssh-ed25519";
const encoder = new TextEncoder();

function joinBytes(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

function uint32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}

function field(value: Uint8Array | string): Uint8Array {
  const bytes = typeof value === "string" ? encoder.encode(value) : value;
  return joinBytes(uint32(bytes.length), bytes);
}

function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

function publicBlob(publicKey: Uint8Array): Uint8Array {
  return joinBytes(field(KIND), field(publicKey));
}

/** An Ed25519 public key as a line of `id_ed25519.pub`. */
export function publicLine(publicKey: Uint8Array): string {
  return `${KIND} ${base64(publicBlob(publicKey))}`;
}

/** A key pair in the private key format of OpenSSH. `check` is any number; OpenSSH uses it to detect a wrong passphrase. */
export function privateKeyFile(publicKey: Uint8Array, seed: Uint8Array, check: number): string {
  const inner = joinBytes(
    uint32(check),
    uint32(check),
    field(KIND),
    field(publicKey),
    field(joinBytes(seed, publicKey)),
    field("freehold"),
  );
  const padding = Uint8Array.from({ length: (8 - (inner.length % 8)) % 8 }, (_, index) => index + 1);
  const whole = joinBytes(
    encoder.encode("openssh-key-v1\0"),
    field("none"),
    field("none"),
    field(""),
    uint32(1),
    field(publicBlob(publicKey)),
    field(joinBytes(inner, padding)),
  );
  const lines = base64(whole).match(/.{1,70}/g) ?? [];
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join("\n")}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}

/** A tar archive. It keeps the file modes: ssh requires a key that only its owner can read. */
export function tarArchive(files: ArchiveFile[], now: number): Uint8Array<ArrayBuffer> {
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
    const checksum = header.reduce((sum, byte) => sum + byte, 0);
    put(`${octal(checksum, 7)} `, 148);
    parts.push(header, body, new Uint8Array((512 - (body.length % 512)) % 512));
  }
  return joinBytes(...parts, new Uint8Array(1024));
}
