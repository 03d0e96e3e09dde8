// @vitest-environment happy-dom
import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { RestoreProgress } from "../../client/api";
import { request } from "../../client/http";
import { RunningRestores } from "./RunningRestores";

vi.mock("../../client/http", async (original) => ({ ...(await original<object>()), request: vi.fn() }));

let place: HTMLDivElement;
let root: Root;
let restores: RestoreProgress[];

beforeEach(() => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  vi.useFakeTimers();
  vi.mocked(request).mockImplementation(async (path) =>
    path === "/v1/history/restores" ? restores : { outcome: "cancelled" },
  );
  place = document.createElement("div");
  document.body.append(place);
  root = createRoot(place);
});
afterEach(async () => {
  await act(async () => root.unmount());
  place.remove();
  vi.useRealTimers();
  vi.clearAllMocks();
});

const draw = () => act(async () => root.render(<RunningRestores />));
const pass = (milliseconds: number) => act(async () => vi.advanceTimersByTimeAsync(milliseconds));
const lists = () => vi.mocked(request).mock.calls.filter(([path]) => path === "/v1/history/restores").length;

function restore(id: string, change: Partial<RestoreProgress> = {}): RestoreProgress {
  const words = "Preparing the files: 20 of 80";
  return { id, kind: "undo", phase: "preparing", done: 20, total: 80, cancellable: true, words, ...change };
}

test("nothing is drawn and nothing is asked again while nothing runs", async () => {
  restores = [];
  await draw();
  await pass(10_000);
  expect([place.textContent, lists()]).toEqual(["", 1]);
});

test("what runs is followed to its end, and each has its own button", async () => {
  restores = [restore("first"), restore("second", { kind: "revert", phase: "waiting", done: 0, total: 0 })];
  await draw();
  const buttons = [...place.querySelectorAll("button")];
  expect(buttons.length).toBe(2);
  await act(async () => buttons[1]?.click());
  expect(vi.mocked(request).mock.calls.map(([path]) => path)).toContain("/v1/history/restores/second/cancel");
  restores = [restore("first", { phase: "changing", cancellable: false })];
  await pass(1_000);
  expect(place.querySelectorAll("button").length).toBe(0);
  expect(place.textContent).toContain("This will finish");
  restores = [];
  await pass(1_000);
  expect(place.textContent).toBe("");
  const asked = lists();
  await pass(10_000);
  expect(lists()).toBe(asked);
});
