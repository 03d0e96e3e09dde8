import type { ConnectionState } from "../client/socket";

export type Outage = "none" | "offline" | "silent" | "short" | "long";

const SHORT_BREAK = 800;
const LONG_BREAK = 5_000;
/** How long the gateway may take to answer a ping before that is said. The page pings every two seconds. */
const SILENCE = 2_500;

/**
 * What is wrong with the connection, to the owner. Times are in milliseconds.
 *
 * A Freehold on the machine of the browser needs no network: while it answers there, the device may be offline.
 */
export function outageOf(
  state: ConnectionState,
  facts: { isOnline: boolean; isOnThisMachine: boolean; brokenFor: number; unansweredFor: number },
): Outage {
  const answers = state === "live" && facts.unansweredFor < SILENCE;
  if (!facts.isOnline && !(facts.isOnThisMachine && answers)) return "offline";
  if (state === "live") return facts.unansweredFor >= SILENCE ? "silent" : "none";
  if (facts.brokenFor >= LONG_BREAK) return "long";
  return facts.brokenFor >= SHORT_BREAK ? "short" : "none";
}
