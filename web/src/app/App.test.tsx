// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { request } from "../client/http";
import { App } from "./App";

vi.mock("./Shell", () => ({
  Shell: () => {
    throw new RangeError("Maximum call stack size exceeded");
  },
}));
vi.mock("../client/http", async (original) => ({ ...(await original<object>()), request: vi.fn() }));

let place: HTMLDivElement;

beforeEach(() => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  vi.mocked(request).mockImplementation(async (path) =>
    path === "/v1/me"
      ? { handle: "me", recovery: "http://127.0.0.1:8001", slots: [], features: [] }
      : { stopped: true },
  );
  place = document.createElement("div");
  document.body.append(place);
});
afterEach(() => {
  place.remove();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test("when the frame of the page has an error, all agents can still be stopped", async () => {
  vi.useFakeTimers();
  await act(async () => createRoot(place).render(<App />));
  const button = () => [...place.querySelectorAll("button")].find((one) => /stop/i.test(one.textContent ?? ""));
  expect(place.textContent).toContain("This page has an error");
  await act(async () => button()?.click());
  await act(async () => vi.advanceTimersByTime(1_000));
  await act(async () => button()?.click());
  expect(vi.mocked(request).mock.calls.map(([path]) => path)).toEqual(["/v1/me", "/v1/stop"]);
  expect(place.textContent).toContain("All agents are stopped.");
});
