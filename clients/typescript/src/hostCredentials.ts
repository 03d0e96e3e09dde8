/** Credentials: `home.credentials`. */

import type { Credential } from "./api.ts";
import type { Link } from "./freehold.ts";

export class Credentials {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** The credentials of the manifest, with their last uses. A secret is never shown. */
  list(): Promise<Credential[]> {
    return this.link.connection.get("/v1/credentials");
  }
}
