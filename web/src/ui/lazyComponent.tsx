import { type ComponentType, type FunctionComponent, startTransition, useEffect, useState } from "react";
import { afterPaint } from "../client/afterPaint";
import { Notice } from "./Notice";

type Load<P> = () => Promise<{ default: ComponentType<P> }>;

const NOT_LOADED = {
  code: "page.not-loaded",
  message: "Part of this page could not be loaded.",
  hint: "Freehold does not answer, or was updated since you opened this page. Reload the page. Your drafts are kept.",
};

interface Loader<P> {
  load: () => Promise<void>;
  /** Null until it is loaded. */
  component: () => ComponentType<P> | null;
}

function loaderOf<P>(load: Load<P>): Loader<P> {
  let component: ComponentType<P> | null = null;
  let loading: Promise<void> | null = null;
  return {
    component: () => component,
    load: () => {
      loading ??= load().then(
        (module) => {
          component = module.default;
        },
        (error: unknown) => {
          loading = null;
          throw error;
        },
      );
      return loading;
    },
  };
}

/**
 * A component whose code is loaded when it is first drawn, or earlier by `load`. React's own `lazy` delays a component
 * that has arrived by up to 300 ms to avoid flicker. This one draws it at once, and fades the waiting text in late.
 * Instead of a waiting text, a component may be drawn with the same properties; it stays when the code cannot be loaded.
 */
export function lazyComponent<P extends object>(
  load: Load<P>,
  waiting: string | FunctionComponent<P> = "Loading…",
): FunctionComponent<P> & { load: () => void } {
  const loader = loaderOf(load);
  const Lazy = (props: P) => <LazyContent loader={loader} props={props} waiting={waiting} />;
  return Object.assign(Lazy, { load: () => void loader.load().catch(() => undefined) });
}

interface LazyContentProps<P> {
  loader: Loader<P>;
  props: P;
  waiting: string | FunctionComponent<P>;
}

function LazyContent<P extends object>({ loader, props, waiting: Waiting }: LazyContentProps<P>) {
  const [state, setState] = useState<"loading" | "loaded" | "failed">(() =>
    loader.component() === null ? "loading" : "loaded",
  );
  const hasStandIn = typeof Waiting !== "string";
  useEffect(() => {
    if (loader.component() !== null) {
      // It may have arrived between the drawing and this effect, and then nothing else would draw it.
      setState("loaded");
      return;
    }
    let mounted = true;
    const load = () =>
      void loader.load().then(
        () => mounted && startTransition(() => setState("loaded")),
        () => mounted && setState("failed"),
      );
    // What stands in for it is not delayed by the code that replaces it.
    const cancel = hasStandIn ? afterPaint(load) : load();
    return () => {
      cancel?.();
      mounted = false;
    };
  }, [loader, hasStandIn]);
  const Component = loader.component();
  if (Component !== null) return <Component {...props} />;
  if (hasStandIn) return <Waiting {...props} />;
  if (state === "failed") {
    return <Notice problem={NOT_LOADED} action={{ label: "Reload the page", run: () => location.reload() }} />;
  }
  return <p className="loading quiet fade-in-late">{Waiting}</p>;
}
