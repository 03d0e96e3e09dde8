import { useEffect, useRef } from "react";
import { isDialogOpen, isTyping } from "../ui/keyboard";
import { go } from "../ui/route";
import { PAGES } from "./pages";
import { shortcutOf } from "./shortcuts.logic";

/** Milliseconds after `g` in which a letter opens a page. */
const SEQUENCE_TIMEOUT = 1_500;

/** Handles the keys that work on every page. */
export function useShortcuts(onOpen: (dialog: "palette" | "shortcuts") => void): void {
  const latest = useRef(onOpen);
  useEffect(() => {
    latest.current = onOpen;
  });
  useEffect(() => {
    let prefixAt = Number.NEGATIVE_INFINITY;
    function handle(event: KeyboardEvent) {
      if (event.defaultPrevented || event.isComposing) return;
      const target = event.composedPath()[0] ?? null;
      // In a terminal Ctrl-K belongs to the shell. Cmd-K does not.
      if (event.ctrlKey && target instanceof Element && target.closest("[data-keys='terminal']")) return;
      const { key, ctrlKey, metaKey, altKey } = event;
      const typing = isTyping(target) || isDialogOpen();
      const isAfterPrefix = event.timeStamp - prefixAt < SEQUENCE_TIMEOUT;
      const shortcut = shortcutOf({ key, ctrlKey, metaKey, altKey, typing }, isAfterPrefix);
      prefixAt = Number.NEGATIVE_INFINITY;
      if (shortcut === null) return;
      switch (shortcut.action) {
        case "prefix":
          prefixAt = event.timeStamp;
          return;
        case "page": {
          const page = PAGES.find((one) => one.key === shortcut.key);
          if (page === undefined) return;
          event.preventDefault();
          go(page.path);
          return;
        }
        default:
          event.preventDefault();
          latest.current(shortcut.action);
      }
    }
    window.addEventListener("keydown", handle);
    return () => window.removeEventListener("keydown", handle);
  }, []);
}
