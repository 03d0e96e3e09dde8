/** The vault: `home.secrets`. */

import type { SecretInfo, SecretName } from "./api.ts";
import type { Link } from "./freehold.ts";

/** The token needs the scope `admin`. No call returns a value. */
export class Secrets {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** The names of the secrets, when each was set and last used. */
  list(): Promise<SecretInfo[]> {
    return this.link.connection.get("/v1/secrets");
  }

  /** Store a secret, or replace it. */
  async set(name: string, value: string): Promise<void> {
    await this.link.connection.put<SecretName>(addressOf(name), { value });
  }

  async remove(name: string): Promise<void> {
    await this.link.connection.delete<SecretName>(addressOf(name));
  }
}

const addressOf = (name: string): string => `/v1/secrets/${encodeURIComponent(name)}`;
