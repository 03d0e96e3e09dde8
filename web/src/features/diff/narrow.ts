import { useSyncExternalStore } from "react";

const NARROW = "(max-width: 760px)";

function listen(changed: () => void): () => void {
  const media = matchMedia(NARROW);
  media.addEventListener("change", changed);
  return () => media.removeEventListener("change", changed);
}

/** Whether there is room for one column only. */
export const useNarrow = (): boolean => useSyncExternalStore(listen, () => matchMedia(NARROW).matches);
