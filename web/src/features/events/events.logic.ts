import type { CloudEvent, Delivery } from "../../client/api";

const OWN = "org.freehold.";

/** The type of an event, without the part that all of Freehold's own have. */
export function shortType(type: string): string {
  return type.startsWith(OWN) ? type.slice(OWN.length) : type;
}

/** Where events go and whether they arrive, in a sentence. */
export function deliveryText(delivery: Delivery): string {
  if (delivery.state === "none") return "Events are kept here and sent nowhere.";
  const waiting = delivery.waiting === 1 ? "1 event waits" : `${delivery.waiting} events wait`;
  if (delivery.state === "away") return `${delivery.target} takes no events. ${waiting}.`;
  return delivery.waiting === 0 ? `${delivery.target} has all events.` : `Sending to ${delivery.target}. ${waiting}.`;
}

/** The data of an event on one line. */
export function dataText(event: CloudEvent): string {
  const text = JSON.stringify(event.data);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

/** Newest first. */
export function newestFirst(events: readonly CloudEvent[]): CloudEvent[] {
  return [...events].reverse();
}
