import { useCallback, useEffect, useLayoutEffect, useState } from "react";

const isSheetEntry = (state: unknown): boolean => typeof state === "object" && state !== null && "sheet" in state;

/**
 * Whether the pane covers the conversation. The Back button of the browser closes it, as it leaves a page. Another
 * session is shown without it.
 */
export function useSheet(session: string): [boolean, (open: boolean) => void] {
  const [isOpen, setOpen] = useState(false);
  // Before anything of the other session is painted.
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is left with the session
  useLayoutEffect(() => () => setOpen(false), [session]);
  useEffect(() => {
    const handle = (event: PopStateEvent) => setOpen(isSheetEntry(event.state));
    window.addEventListener("popstate", handle);
    return () => window.removeEventListener("popstate", handle);
  }, []);
  const change = useCallback((open: boolean) => {
    setOpen(open);
    if (open && !isSheetEntry(history.state)) history.pushState({ sheet: true }, "");
    if (!open && isSheetEntry(history.state)) history.back();
  }, []);
  return [isOpen, change];
}
