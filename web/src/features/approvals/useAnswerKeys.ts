import { useEffect, useRef } from "react";
import { isDialogOpen, isTyping } from "../../ui/keyboard";
import { useOwnsKey } from "../../ui/pane";
import { answerIndexOf, type KeyMode, wasSeen } from "./answerKeys.logic";

/** Answers a request by number keys, once it has been visible long enough to be read. */
export function useAnswerKeys(mode: KeyMode, count: number, onChoose: (index: number) => void): void {
  const ownsKey = useOwnsKey();
  const visibleSince = useRef<number | null>(null);
  useEffect(() => {
    const update = () => {
      visibleSince.current = document.hidden ? null : performance.now();
    };
    update();
    document.addEventListener("visibilitychange", update);
    return () => document.removeEventListener("visibilitychange", update);
  }, []);
  const latest = useRef(onChoose);
  useEffect(() => {
    latest.current = onChoose;
  });
  useEffect(() => {
    if (mode === "none") return;
    function handle(event: KeyboardEvent) {
      if (event.defaultPrevented || event.repeat || event.isComposing || isDialogOpen() || !ownsKey(event)) return;
      const target = event.composedPath()[0] ?? null;
      // A terminal and an editor use every key themselves, also with Alt.
      if (target instanceof Element && target.closest("[data-keys]") !== null) return;
      const { key, code, altKey, ctrlKey, metaKey, shiftKey } = event;
      const typing = mode === "alt" || isTyping(target);
      const index = answerIndexOf({ key, code, altKey, ctrlKey, metaKey, shiftKey, typing }, count);
      if (index === null) return;
      event.preventDefault();
      if (wasSeen(visibleSince.current, event.timeStamp)) latest.current(index);
    }
    window.addEventListener("keydown", handle);
    return () => window.removeEventListener("keydown", handle);
  }, [mode, count, ownsKey]);
}
