import { useEffect } from "react";
import type { AgentOffer, SessionEvent } from "../../../client/api";
import { type ResourceHandle, useResource } from "../../../data/resource";

/** The options and commands of the agent. An event tells when they changed. */
export function useOffer(id: string, events: readonly SessionEvent[]): ResourceHandle<AgentOffer> {
  const offer = useResource<AgentOffer>(`/v1/sessions/${encodeURIComponent(id)}/offer`, { keep: (held) => held });
  const changedAt = events.findLast((event) => event.kind === "options" || event.kind === "commands")?.seq ?? 0;
  const { reload } = offer;
  useEffect(() => {
    if (changedAt > 0) reload();
  }, [changedAt, reload]);
  return offer;
}
