import { useCallback, useState, useSyncExternalStore } from "react";
import { readLayout, type WorkbenchLayout } from "./workbench.logic";

const KEY = "freehold.workbench";
/** From here on the pane is beside the conversation. On smaller screens it covers it. */
const WIDE = "(min-width: 1100px)";

function listen(changed: () => void): () => void {
  const media = matchMedia(WIDE);
  media.addEventListener("change", changed);
  return () => media.removeEventListener("change", changed);
}

export const useWideScreen = (): boolean => useSyncExternalStore(listen, () => matchMedia(WIDE).matches);

/** The layout that the owner chose. It is stored when it changes, unless `draft` says that it still moves. */
export function useWorkbenchLayout(): {
  layout: WorkbenchLayout;
  change: (part: Partial<WorkbenchLayout>, options?: { draft?: boolean }) => void;
} {
  const [layout, setLayout] = useState(() => readLayout(localStorage.getItem(KEY), innerWidth));
  const change = useCallback((part: Partial<WorkbenchLayout>, { draft = false }: { draft?: boolean } = {}) => {
    setLayout((held) => {
      const next = { ...held, ...part };
      if (!draft) localStorage.setItem(KEY, JSON.stringify(next));
      return next;
    });
  }, []);
  return { layout, change };
}
