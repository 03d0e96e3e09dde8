/** Who is signed in. The first thing that the page asks, before it draws anything. */

import type { Me } from "./api";
import { request } from "./http";
import { readKey } from "./signInKey";

let asked: Promise<Me> | null = null;

/** Sends the request now, so that the first `fetchMe` waits less for its reply. */
export function askEarly(): void {
  if (readKey() === null || location.pathname === "/sign-in") return;
  asked = request<Me>("/v1/me");
  // Whoever fetches it is told of its failure.
  asked.catch(() => undefined);
}

export function fetchMe(): Promise<Me> {
  const early = asked;
  asked = null;
  return early ?? request<Me>("/v1/me");
}
