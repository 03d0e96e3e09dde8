import { describe, expect, it } from "vitest";
import type { CloudEvent, Delivery } from "../../client/api";
import { dataText, deliveryText, newestFirst, shortType } from "./events.logic";

function delivery(changes: Partial<Delivery>): Delivery {
  return {
    sink: "webhook",
    target: "https://example.com",
    state: "ok",
    since: "2026-01-01T00:00:00Z",
    delivered: 0,
    waiting: 0,
    dead: 0,
    dropped: 0,
    error: null,
    ...changes,
  };
}

describe("events", () => {
  it("shortens only the types of Freehold itself", () => {
    expect(shortType("org.freehold.history.undone")).toBe("history.undone");
    expect(shortType("com.example.told")).toBe("com.example.told");
  });

  it("says where events go and whether they arrive", () => {
    expect(deliveryText(delivery({ state: "none" }))).toBe("Events are kept here and sent nowhere.");
    expect(deliveryText(delivery({}))).toBe("https://example.com has all events.");
    expect(deliveryText(delivery({ waiting: 3 }))).toBe("Sending to https://example.com. 3 events wait.");
    expect(deliveryText(delivery({ state: "away", waiting: 1 }))).toBe(
      "https://example.com takes no events. 1 event waits.",
    );
  });

  it("shows long data in part", () => {
    const event = { data: { text: "x".repeat(1000) } } as unknown as CloudEvent;
    expect(dataText(event)).toHaveLength(301);
  });

  it("shows the newest event first", () => {
    const events = [{ id: "1" }, { id: "2" }] as unknown as CloudEvent[];
    expect(newestFirst(events).map((event) => event.id)).toEqual(["2", "1"]);
  });
});
