/** Creates an SSH key in the browser. The private key is downloaded once and never sent anywhere. */

import type { SshCertificate, SshKey } from "../../client/api";
import { request } from "../../client/http";
import { type ArchiveFile, privateKeyFile, publicLine, tarArchive } from "./sshKeyFile.logic";

const SEED_LENGTH = 32;

interface KeyPair {
  publicKey: Uint8Array;
  seed: Uint8Array;
}

/** A new key pair; null when this browser cannot create Ed25519 keys. */
async function createKeyPair(): Promise<KeyPair | null> {
  try {
    const pair = (await crypto.subtle.generateKey({ name: "Ed25519" }, true, ["sign", "verify"])) as CryptoKeyPair;
    const publicKey = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
    const wrapped = new Uint8Array(await crypto.subtle.exportKey("pkcs8", pair.privateKey));
    return { publicKey, seed: wrapped.slice(wrapped.length - SEED_LENGTH) };
  } catch {
    return null;
  }
}

function download(files: ArchiveFile[]) {
  const address = URL.createObjectURL(new Blob([tarArchive(files, Date.now())], { type: "application/x-tar" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = "freehold-ssh.tar";
  link.click();
  // Chrome reads the address after the click.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Creates a key, gets a certificate for it and downloads both. A browser that cannot gets a key of the server. */
export async function createAndDownloadKey(label: string): Promise<"browser" | "server"> {
  const pair = await createKeyPair();
  if (pair === null) {
    const key = await request<SshKey>("/v1/ssh/keys", { method: "POST", body: { kind: "ed25519", label } });
    download([
      { name: "freehold", text: key.private_key, secret: true },
      { name: "freehold_known_hosts", text: `${key.known_hosts}\n` },
      { name: "freehold.conf", text: key.config },
    ]);
    return "server";
  }
  const key = await request<SshCertificate>("/v1/ssh/certificates", {
    method: "POST",
    body: { public_key: publicLine(pair.publicKey), label },
  });
  const check = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
  download([
    { name: "freehold", text: privateKeyFile(pair.publicKey, pair.seed, check), secret: true },
    { name: "freehold-cert.pub", text: `${key.certificate}\n` },
    { name: "freehold_known_hosts", text: `${key.known_hosts}\n` },
    { name: "freehold.conf", text: key.config },
  ]);
  return "browser";
}
