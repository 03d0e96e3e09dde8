import type { Credential } from "../../client/api";
import { countOf } from "../../ui/format";

/** What agents may send with a credential, in a sentence. */
export function coverText({ methods, writes }: Credential): string {
  const which = methods.length === 0 ? "All methods" : methods.join(", ");
  const changes = {
    ask: "You are asked before a push or another change.",
    allow: "Changes are sent without asking you.",
    deny: "Changes are refused.",
  }[writes];
  return `${which}. ${changes}`;
}

/** How often it was used, or what is missing. */
export function countUses({ has_secret, secret, uses }: Credential): string {
  if (!has_secret) return `Its secret is not stored yet. Run: freehold secret set ${secret}`;
  return uses === 0
    ? "Not used since Freehold started."
    : `Used for ${countOf(uses, "request")} since Freehold started.`;
}

/** Timeline events after which the list is fetched again. */
export function concernsCredentials(event: unknown): boolean {
  return (event as { kind?: unknown } | null)?.kind === "egress.credential_used";
}
