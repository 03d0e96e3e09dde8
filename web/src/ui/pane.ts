import { createContext, useCallback, useContext } from "react";

/** A part of the screen that shows a page beside another one. It has an address of its own. */
export interface Pane {
  address: string;
  /** Shows another page in the pane, or on the whole screen when the pane does not have that page. */
  go: (to: string) => void;
}

/** Null on the whole screen. */
export const PaneContext = createContext<Pane | null>(null);

/** The session that a pane is beside; null on the whole screen. Apart, so that another session draws no page again. */
export const PaneSessionContext = createContext<string | null>(null);

export const useIsInPane = (): boolean => useContext(PaneContext) !== null;

/** Marks the content of a pane in the document. */
export const PANE_CONTENT = "workbench-body";

/**
 * Whether a key that was pressed belongs to the component: two sessions side by side both listen, and only the one with
 * the focus may act. Without a focus it is the one on the main part of the screen.
 */
export function useOwnsKey(): (event: KeyboardEvent) => boolean {
  const isInPane = useIsInPane();
  return useCallback(
    (event) => {
      const target = event.composedPath()[0] ?? null;
      return (target instanceof Element && target.closest(`.${PANE_CONTENT}`) !== null) === isInPane;
    },
    [isInPane],
  );
}
