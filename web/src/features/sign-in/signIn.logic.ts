import type { SignInOptions } from "../../client/api";
import type { Problem } from "../../client/http";

/** The ways to sign in (`GET /v1/sign-in`). */
export type SignInOffer = SignInOptions;

export type SignInState =
  | { step: "loading" }
  | { step: "redeeming" }
  | { step: "offer"; offer: SignInOffer; problem: Problem | null }
  | { step: "already-signed-in"; problem: Problem }
  | { step: "leaving" }
  | { step: "failed"; problem: Problem };

/** The one-time token of a sign-in link. It is always in the fragment, which browsers do not send. */
export function tokenFromFragment(fragment: string): string | null {
  const token = fragment.startsWith("#") ? fragment.slice(1) : fragment;
  return /^[A-Za-z0-9_-]{20,200}$/.test(token) ? token : null;
}

export function buttonLabel(offer: SignInOffer): string {
  const handle = offer.atproto?.handle;
  return handle ? `Sign in as @${handle}` : "Sign in with Bluesky";
}

/** The address where the sign-in must start; null when it is this one. The answer returns there. */
export function otherOrigin(offer: SignInOffer, origin: string, path: string): string | null {
  const wanted = offer.atproto?.origin;
  return wanted !== undefined && wanted !== origin ? `${wanted}${path === "/" ? "/sign-in" : path}` : null;
}

/** The page to return to after the sign-in, with the code of a program that waits, but never with a one-time token. */
export function returnPath({ pathname, hash }: { pathname: string; hash: string }): string {
  if (!/^\/[a-z-]+$/.test(pathname) || pathname === "/sign-in") return "/";
  return /^#[A-Z]{4}-[A-Z]{4}$/.test(hash) ? pathname + hash : pathname;
}
