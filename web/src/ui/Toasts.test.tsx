// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, test } from "vitest";
import { RequestFailed } from "../client/http";
import { ToastProvider, useToasts } from "./Toasts";

test("a failure names its place in the documentation and its id, and what the page refused has none", async () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.body.appendChild(document.createElement("div"));
  let toasts: ReturnType<typeof useToasts> | null = null;
  function Page() {
    toasts = useToasts();
    return null;
  }
  await act(async () =>
    createRoot(place).render(
      <ToastProvider>
        <Page />
      </ToastProvider>,
    ),
  );
  const problem = { code: "models.no-key", message: "There is no key", hint: "Set it", error_id: "e-17" };
  await act(async () => toasts?.failed(new RequestFailed(409, problem)));
  const shown = place.querySelector(".toast");
  expect(shown?.querySelector("a")?.getAttribute("href")).toBe("/docs/errors.html#models.no-key");
  expect(shown?.textContent).toContain("e-17");
  await act(async () => toasts?.refused("Too large"));
  expect(place.querySelectorAll(".toast a")).toHaveLength(1);
});
