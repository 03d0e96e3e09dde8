import { useEffect, useRef } from "react";
import type { AgentOffer, SessionEvent } from "../../../client/api";
import { type ResourceHandle, useResource } from "../../../data/resource";

/** The options and commands of the agent. An event tells when they changed. */
export function useOffer(id: string, events: readonly SessionEvent[]): ResourceHandle<AgentOffer> {
  const offer = useResource<AgentOffer>(`/v1/sessions/${encodeURIComponent(id)}/offer`, {
    keep: (held) => held,
    isSecondary: true,
  });
  const changedAt = events.findLast((event) => event.kind === "options" || event.kind === "commands")?.seq ?? 0;
  const { reload } = offer;
  const known = useRef<number | null>(null);
  useEffect(() => {
    const before = known.current;
    known.current = changedAt;
    // What is told by the events that are there at first was before the offer is asked for.
    if (before !== null && changedAt > before) reload();
  }, [changedAt, reload]);
  return offer;
}
