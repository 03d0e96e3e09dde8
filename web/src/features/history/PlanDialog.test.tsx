// @vitest-environment happy-dom
import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { RestoreCancellation, RestoreProgress } from "../../client/api";
import { RequestFailed, request } from "../../client/http";
import { ToastProvider } from "../../ui/Toasts";
import { PlanDialog } from "./PlanDialog";

vi.mock("../../client/http", async (original) => ({ ...(await original<object>()), request: vi.fn() }));

const PLAN = { kind: "undo", target: 1, steps: [], total: 0, counts: {}, summary: "", conflicts: [], shared: false };
const onClose = vi.fn();
const onDone = vi.fn();
let place: HTMLDivElement;
let root: Root;
/** The name that the page gave to its undo, and the two ways in which the gateway can answer it. */
let sent: { id: string; answer: (outcome: object) => void; fail: (code: string) => void } | null;
let restores: RestoreProgress[];
let cancellation: RestoreCancellation["outcome"];

beforeEach(async () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  vi.useFakeTimers();
  sent = null;
  restores = [];
  cancellation = "cancelled";
  vi.mocked(request).mockImplementation(async (path, init) => {
    if (path === "/v1/history/plan") return PLAN;
    if (path === "/v1/history/restores") return restores;
    if (path.endsWith("/cancel")) return { outcome: cancellation };
    return new Promise((answer, refuse) => {
      const fail = (code: string) => refuse(new RequestFailed(409, { code, message: "It failed", hint: "" }));
      const { restore_id: id } = (init?.body ?? {}) as { restore_id: string };
      sent = { id, answer, fail };
    });
  });
  place = document.createElement("div");
  document.body.append(place);
  root = createRoot(place);
  await act(async () =>
    root.render(
      <ToastProvider>
        <PlanDialog action={{ action: "undo" }} onClose={onClose} onDone={onDone} />
      </ToastProvider>,
    ),
  );
});
afterEach(async () => {
  await act(async () => root.unmount());
  place.remove();
  vi.useRealTimers();
  vi.clearAllMocks();
});

const button = (text: string) => [...place.querySelectorAll("button")].find((one) => one.textContent === text);
const click = (text: string) => act(async () => button(text)?.click());
const poll = () => act(async () => vi.advanceTimersByTimeAsync(400));
const cancelCalls = () => vi.mocked(request).mock.calls.filter(([path]) => path.endsWith("/cancel"));

function progress(change: Partial<RestoreProgress> = {}): RestoreProgress {
  const words = "Preparing the files: 20 of 80";
  const id = sent?.id ?? "";
  return { id, kind: "undo", phase: "preparing", done: 20, total: 80, cancellable: true, words, ...change };
}

test("an undo shows how far it is, as a progress bar and in words", async () => {
  await click("Undo");
  restores = [progress({ id: "another", done: 1 }), progress()];
  await poll();
  const bar = place.querySelector("progress");
  expect([bar?.value, bar?.max, bar?.getAttribute("aria-label")]).toEqual([20, 80, "Preparing the files: 20 of 80"]);
  expect(place.querySelector(".restore-status [role=status]")?.textContent).toContain("25 %");
  expect(place.textContent).toContain("No file has changed yet.");
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Progress");
});

test("Cancel stops the undo of this dialog, and the page says that nothing was changed", async () => {
  await click("Undo");
  await click("Cancel");
  expect(cancelCalls().map(([path]) => path)).toEqual([`/v1/history/restores/${sent?.id}/cancel`]);
  expect(button("Cancelling…")?.getAttribute("aria-disabled")).toBe("true");
  await act(async () => sent?.fail("history.cancelled"));
  expect(place.textContent).toContain("Undo the last change: cancelled. No file was changed");
  expect([onClose.mock.calls.length, onDone.mock.calls.length]).toEqual([1, 0]);
});

test("a cancellation that comes before the undo is tried again until the undo is there", async () => {
  await click("Undo");
  cancellation = "not-found";
  await click("Cancel");
  await poll();
  expect(cancelCalls().length).toBe(2);
  cancellation = "cancelled";
  await poll();
  await poll();
  expect(cancelCalls().length).toBe(3);
});

test("once files change, the button says that it will finish, and closes only the dialog", async () => {
  await click("Undo");
  restores = [progress({ phase: "changing", cancellable: false, words: "Changing the files: 20 of 80" })];
  await poll();
  expect(button("Cancel")).toBeUndefined();
  await click("Let it finish");
  expect(cancelCalls()).toEqual([]);
  expect(onClose).toHaveBeenCalledOnce();
});

test("a cancellation that came too late is told as such", async () => {
  await click("Undo");
  cancellation = "too-late";
  await click("Cancel");
  expect(button("Let it finish")).toBeDefined();
  expect(place.textContent).toContain("This will finish");
});

test("Escape cancels before the first change", async () => {
  await click("Undo");
  await act(async () => place.querySelector("dialog")?.dispatchEvent(new Event("cancel", { cancelable: true })));
  expect(cancelCalls().length).toBe(1);
  expect(onClose).not.toHaveBeenCalled();
});

test("what ends after its dialog was closed closes no other dialog, and its failure is still shown", async () => {
  await click("Undo");
  await act(async () => root.render(<ToastProvider>{null}</ToastProvider>));
  await act(async () => sent?.fail("history.disk-error"));
  expect(place.textContent).toContain("It failed");
  expect(onClose).not.toHaveBeenCalled();
});

test("a failure stays in the dialog, where the undo can be tried again", async () => {
  await click("Undo");
  await act(async () => sent?.fail("history.disk-error"));
  expect(place.querySelector("[role=alert]")?.textContent).toContain("It failed");
  expect(button("Undo")).toBeDefined();
  await click("Undo");
  await act(async () => sent?.answer({ total_unsettled: 0 }));
  expect(place.textContent).toContain("Undo the last change: done");
  expect([onClose.mock.calls.length, onDone.mock.calls.length]).toEqual([1, 1]);
});
