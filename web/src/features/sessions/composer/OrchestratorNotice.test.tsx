// @vitest-environment happy-dom
import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Slot } from "../../../client/api";
import { request } from "../../../client/http";
import { OrchestratorNotice } from "./OrchestratorNotice";

vi.mock("../../../client/http", async (original) => ({ ...(await original<object>()), request: vi.fn() }));

let place: HTMLDivElement;
let root: Root;

beforeEach(() => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  place = document.createElement("div");
  document.body.append(place);
  root = createRoot(place);
});
afterEach(async () => {
  await act(async () => root.unmount());
  place.remove();
  vi.restoreAllMocks();
});

async function show(...slots: Pick<Slot, "name" | "state">[]) {
  vi.mocked(request).mockResolvedValue(slots);
  await act(async () => root.render(<OrchestratorNotice />));
  // It is asked for when the page is painted.
  await act(async () => vi.waitFor(() => expect(request).toHaveBeenCalled()));
  return place.querySelector("[role=status]");
}

test("a lost orchestrator is told, with the way to the slots", async () => {
  const notice = await show({ name: "beads", state: "ok" }, { name: "orchestrator", state: "unavailable" });
  expect(notice?.textContent).toContain("no new work is accepted");
  await act(async () => notice?.querySelector("button")?.click());
  expect(location.pathname).toBe("/settings/slots");
});

test.each(["ok", "off"] as const)("an orchestrator that is %s is not told", async (state) => {
  expect(await show({ name: "memory", state: "unavailable" }, { name: "orchestrator", state })).toBeNull();
});
