import type { Offer } from "../../client/api";
import type { Problem } from "../../client/http";

/** What the gateway offers somebody who is not signed in (`GET /v1/sign-in`). */
export type SignInOffer = Offer;

export type SignInState =
  | { step: "loading" }
  | { step: "redeeming" }
  | { step: "offer"; offer: SignInOffer; problem: Problem | null }
  | { step: "inside"; problem: Problem }
  | { step: "leaving" }
  | { step: "failed"; problem: Problem };

/** The one-time token of a sign-in link: only ever in the fragment, which browsers do not send. */
export function tokenFromFragment(fragment: string): string | null {
  const token = fragment.startsWith("#") ? fragment.slice(1) : fragment;
  return /^[A-Za-z0-9_-]{20,200}$/.test(token) ? token : null;
}

export function buttonLabel(offer: SignInOffer): string {
  const handle = offer.atproto?.handle;
  return handle ? `Sign in as @${handle}` : "Sign in with Bluesky";
}

/** Where the sign-in must begin when this page is not it: the answer comes back there, with that host's cookies. */
export function elsewhere(offer: SignInOffer, origin: string, way: string): string | null {
  const wanted = offer.atproto?.origin;
  return wanted !== undefined && wanted !== origin ? `${wanted}${way === "/" ? "/sign-in" : way}` : null;
}

/** The page to come back to once signed in, with the code of a program that waits; never a one-time token. */
export function wayBack({ pathname, hash }: { pathname: string; hash: string }): string {
  if (!/^\/[a-z-]+$/.test(pathname) || pathname === "/sign-in") return "/";
  return /^#[A-Z]{4}-[A-Z]{4}$/.test(hash) ? pathname + hash : pathname;
}
