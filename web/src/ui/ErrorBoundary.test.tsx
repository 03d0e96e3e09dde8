// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ErrorBoundary } from "./ErrorBoundary";

function Broken(): never {
  throw new Error("rows is not a list");
}

let place: HTMLDivElement;

beforeEach(() => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  place = document.createElement("div");
  document.body.append(place);
});
afterEach(() => {
  place.remove();
  vi.restoreAllMocks();
});

test("a page that throws is replaced by a notice with a reload button, and its surroundings stay", async () => {
  const root = createRoot(place);
  const reload = vi.spyOn(location, "reload").mockImplementation(() => undefined);
  await act(async () =>
    root.render(
      <>
        <nav>Pages</nav>
        <ErrorBoundary key="/files" name="Files">
          <Broken />
        </ErrorBoundary>
      </>,
    ),
  );
  expect(place.querySelector("nav")?.textContent).toBe("Pages");
  expect(place.querySelector("[role=alert]")?.textContent).toContain("Files has an error: rows is not a list");
  const button = place.querySelector("button");
  expect(button?.textContent).toBe("Reload the page");
  await act(async () => button?.click());
  expect(reload).toHaveBeenCalledOnce();
});

test("going to another page shows it", async () => {
  const root = createRoot(place);
  const show = (path: string, page: React.ReactNode) =>
    act(async () =>
      root.render(
        <ErrorBoundary key={path} name={path}>
          {page}
        </ErrorBoundary>,
      ),
    );
  await show("/files", <Broken />);
  expect(place.querySelector("[role=alert]")).not.toBeNull();
  await show("/history", <p>History</p>);
  expect(place.querySelector("[role=alert]")).toBeNull();
  expect(place.textContent).toBe("History");
});
