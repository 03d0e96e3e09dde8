import type { Slot } from "../../client/api";
import { hasKind, useResource } from "../../data/resource";

/** The slots with their modes and states, kept up to date. */
export function useSlots() {
  return useResource<Slot[]>("/v1/slots", {
    topic: "timeline",
    durable: true,
    concerns: (event) => hasKind(event, "slot."),
    delay: 100,
    isSecondary: true,
  });
}
