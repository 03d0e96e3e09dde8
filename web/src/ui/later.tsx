import { useEffect, useState, type ComponentType, type FunctionComponent } from "react";
import { Notice } from "./Notice";

type Fetch<P> = () => Promise<{ default: ComponentType<P> }>;

const FAILED = {
  code: "page.not-loaded",
  message: "This part of the page did not come.",
  hint: "Freehold was away, or is newer than this page. Reload it; what you typed elsewhere is kept.",
};

/**
 * A component that is fetched when it is first drawn, or a moment before by `load`, and is there at once from then on.
 * React's own way of waiting holds back what has come for a third of a second, so as not to flicker; here the words of
 * waiting fade in late instead.
 */
export function later<P extends object>(fetch: Fetch<P>, waiting = "One moment…"): FunctionComponent<P> & { load: () => void } {
  let found: ComponentType<P> | null = null;
  let coming: Promise<void> | null = null;
  function load(): Promise<void> {
    coming ??= fetch().then(
      (module) => {
        found = module.default;
      },
      (error: unknown) => {
        coming = null;
        throw error;
      },
    );
    return coming;
  }
  function Later(props: P) {
    const [state, setState] = useState<"waiting" | "here" | "failed">("waiting");
    useEffect(() => {
      if (found !== null) return;
      let shown = true;
      load().then(
        () => shown && setState("here"),
        () => shown && setState("failed"),
      );
      return () => {
        shown = false;
      };
    }, []);
    if (found !== null) {
      const Found = found;
      return <Found {...props} />;
    }
    if (state === "failed") return <Notice problem={FAILED} action={{ label: "Reload", run: () => location.reload() }} />;
    return <p className="loading quiet later">{waiting}</p>;
  }
  return Object.assign(Later, { load: () => void load().catch(() => undefined) });
}
