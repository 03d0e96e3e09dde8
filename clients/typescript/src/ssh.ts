/** SSH keys: `home.ssh`. */

import type { SshCertificate, SshCredential, SshRevoked, SshServer } from "./api.ts";
import type { Link } from "./freehold.ts";

export class Ssh {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** The address and the host key of the SSH server. */
  server(): Promise<SshServer> {
    return this.link.connection.get("/v1/ssh");
  }

  /** A certificate for your public key. It expires, and it ends with this token. */
  certify(publicKey: string, options: { hours?: number; label?: string } = {}): Promise<SshCertificate> {
    return this.link.connection.post("/v1/ssh/certificates", { public_key: publicKey, ...options });
  }

  /** All keys that have not expired, the newest first. */
  list(): Promise<SshCredential[]> {
    return this.link.connection.get("/v1/ssh/certificates");
  }

  /** Revoke a key. Its connections end within a second. */
  revoke(credential: string): Promise<SshRevoked> {
    return this.link.connection.delete(`/v1/ssh/certificates/${encodeURIComponent(credential)}`);
  }
}
