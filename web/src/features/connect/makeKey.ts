/** Makes the key in the browser: the private half is downloaded once and never sent anywhere. */

import { request } from "../../client/http";
import { packed, privateKeyFile, publicLine, type PackedFile, type SshCertificate, type SshKey } from "./connect.logic";

const SEED = 32;

interface Pair {
  publicKey: Uint8Array;
  seed: Uint8Array;
}

/** Null when this browser cannot make Ed25519 keys. */
async function makePair(): Promise<Pair | null> {
  try {
    const pair = (await crypto.subtle.generateKey({ name: "Ed25519" }, true, ["sign", "verify"])) as CryptoKeyPair;
    const publicKey = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
    const wrapped = new Uint8Array(await crypto.subtle.exportKey("pkcs8", pair.privateKey));
    return { publicKey, seed: wrapped.slice(wrapped.length - SEED) };
  } catch {
    return null;
  }
}

function download(files: PackedFile[]) {
  const address = URL.createObjectURL(new Blob([packed(files, Date.now())], { type: "application/x-tar" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = "freehold-ssh.tar";
  link.click();
  // Chrome reads the address after the click has returned.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Makes a key, has it certified and downloads both. */
export async function makeAndDownload(label: string): Promise<"here" | "there"> {
  const pair = await makePair();
  if (pair === null) {
    const made = await request<SshKey>("/v1/ssh/keys", { method: "POST", body: { kind: "ed25519", label } });
    download([
      { name: "freehold", text: made.private_key, secret: true },
      { name: "freehold_known_hosts", text: `${made.known_hosts}\n` },
      { name: "freehold.conf", text: made.config },
    ]);
    return "there";
  }
  const made = await request<SshCertificate>("/v1/ssh/certificates", {
    method: "POST",
    body: { public_key: publicLine(pair.publicKey), label },
  });
  const check = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
  download([
    { name: "freehold", text: privateKeyFile(pair.publicKey, pair.seed, check), secret: true },
    { name: "freehold-cert.pub", text: `${made.certificate}\n` },
    { name: "freehold_known_hosts", text: `${made.known_hosts}\n` },
    { name: "freehold.conf", text: made.config },
  ]);
  return "here";
}
