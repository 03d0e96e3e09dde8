import { useEffect, useRef } from "react";
import { isTyping } from "../../../ui/keyboard";
import { useOwnsKey } from "../../../ui/pane";

/** Calls `onEscape` when Escape is pressed anywhere on the page and nothing else uses the key. */
export function useEscapeKey(enabled: boolean, onEscape: () => void): void {
  const ownsKey = useOwnsKey();
  const latest = useRef(onEscape);
  useEffect(() => {
    latest.current = onEscape;
  });
  useEffect(() => {
    if (!enabled) return;
    function handle(event: KeyboardEvent) {
      if (event.key !== "Escape" || event.defaultPrevented || !ownsKey(event)) return;
      const target = event.composedPath()[0] ?? null;
      const isUsed = isTyping(target) || (target instanceof Element && target.closest("[role=menu], [role=dialog]"));
      if (!isUsed && document.querySelector("dialog[open], [role=menu]") === null) latest.current();
    }
    window.addEventListener("keydown", handle);
    return () => window.removeEventListener("keydown", handle);
  }, [enabled, ownsKey]);
}
