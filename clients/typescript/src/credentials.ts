/** Sign-ins and API tokens: `home.signIns` and `home.tokens`. */

import type { EndedCount, SignInInfo, TokenInfo } from "./api.ts";
import type { Link } from "./freehold.ts";

/** The signed-in browsers. */
export class SignIns {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** All sign-ins, the most recently used first. */
  list(): Promise<SignInInfo[]> {
    return this.link.connection.get("/v1/sign-ins");
  }

  /** Sign out one browser by its id. Its sockets and streams are closed at once. */
  async end(signIn: string): Promise<void> {
    await this.link.connection.delete<EndedCount>(`/v1/sign-ins/${encodeURIComponent(signIn)}`);
  }

  /** Sign out all browsers. Returns how many there were. */
  async endAll(): Promise<number> {
    return (await this.link.connection.delete<EndedCount>("/v1/sign-ins")).ended;
  }
}

/** The API tokens. A token cannot create another token; only a browser can. */
export class Tokens {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  list(): Promise<TokenInfo[]> {
    return this.link.connection.get("/v1/tokens");
  }

  async revoke(name: string): Promise<void> {
    await this.link.connection.delete<EndedCount>(`/v1/tokens/${encodeURIComponent(name)}`);
  }
}
