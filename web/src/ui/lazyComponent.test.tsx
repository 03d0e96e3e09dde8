// @vitest-environment happy-dom
import { useLayoutEffect } from "react";
import { createRoot } from "react-dom/client";
import { expect, test, vi } from "vitest";
import { lazyComponent } from "./lazyComponent";

test("a component that arrives between its first drawing and the effect is drawn", async () => {
  let arrive: (module: { default: () => string }) => void = () => undefined;
  const Lazy = lazyComponent<object>(
    () =>
      new Promise((resolve) => {
        arrive = resolve as typeof arrive;
      }),
  );
  Lazy.load();
  function Page() {
    // Runs after the first drawing and before the effects.
    useLayoutEffect(() => arrive({ default: () => "here" }), []);
    return <Lazy />;
  }
  const place = document.createElement("div");
  const root = createRoot(place);
  root.render(<Page />);
  await vi.waitFor(() => expect(place.textContent).toBe("here"), 30_000);
  root.unmount();
});
