import type { MeshClient, Neighbour, SentWork } from "../../client/api";
import { formatDateTime } from "../../ui/format";

export const GRANTS: readonly { name: Neighbour["grants"][number]; label: string }[] = [
  { name: "work", label: "Send work to an agent here" },
  { name: "beads", label: "Use the work items" },
  { name: "memory", label: "Read and change all memories" },
  { name: "pods", label: "Use the data" },
  { name: "events", label: "Read and publish events" },
  { name: "register", label: "Register as a client" },
];

const PROOFS: Record<Neighbour["proof"], string> = {
  none: "names no account",
  claimed: "not checked yet",
  proven: "the account names this key",
  refuted: "not confirmed: the account does not name this key",
};

/** The account of a neighbour, and whether that is known to be true. */
export function accountText(did: string | null, proof: Neighbour["proof"]): string {
  return did === null ? "No account" : `${did} (${PROOFS[proof]})`;
}

/** Whether the owner's own account names the key of this Freehold. */
export function ownAccountText(proof: Neighbour["proof"]): string {
  if (proof === "proven") return "Your account names this key.";
  return proof === "claimed"
    ? "Your account could not be asked about this key."
    : "Your account does not name this key.";
}

/** What a neighbour may use, in words. */
export function grantsText(grants: readonly string[]): string {
  return grants.length === 0 ? "nothing" : grants.join(", ");
}

/** What a client tells of itself, line by line, and what it was given here. */
export function clientLines(client: MeshClient): string[] {
  const heard = formatDateTime(Date.parse(client.heard) / 1000);
  const contracts = Object.entries(client.contracts).map(([name, version]) => `${name} ${version}`);
  return [
    `Freehold ${client.version}, load ${client.load.toFixed(1)}, last heard ${heard}`,
    client.image === null ? "No image of its own" : `Image ${client.image}`,
    `Works there: ${grantsText(client.capabilities)}. Contracts: ${contracts.join(", ") || "none"}`,
    `Uses here: ${grantsText(client.grants)}`,
  ];
}

const STATES: Record<SentWork["state"], string> = {
  sending: "Waiting to be sent",
  working: "At work",
  returned: "Files to look at",
  done: "Done, without files",
  failed: "Failed",
  lost: "Lost: it is not known whether it was finished, and it is not sent again",
  ended: "Ended",
  accepted: "Accepted",
  dropped: "Dropped",
};

export function stateText(work: SentWork): string {
  const text = STATES[work.state];
  return work.error === null ? text : `${text}. ${work.error}`;
}

/** Whether something may still change by itself. */
export function isOpen(work: SentWork): boolean {
  return work.state === "sending" || work.state === "working";
}

/** A list with one value more, or without it. */
export function toggled<T>(values: readonly T[], value: T): T[] {
  return values.includes(value) ? values.filter((one) => one !== value) : [...values, value];
}

const CODE = "freehold-pair:";

/** The pairing code of a link, which is behind the #; empty when there is none. */
export function codeOfHash(hash: string): string {
  const code = hash.replace(/^#/, "");
  return code.startsWith(CODE) ? code : "";
}

/** A link that opens another control center with a code; null while its address is not complete. */
export function pairingLink(address: string, code: string): string | null {
  try {
    const { protocol, origin } = new URL(address.trim());
    return protocol === "https:" || protocol === "http:" ? `${origin}/neighbours#${code}` : null;
  } catch {
    return null;
  }
}
