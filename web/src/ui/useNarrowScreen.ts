import { useSyncExternalStore } from "react";

const QUERY = "(max-width: 760px)";

function listen(changed: () => void): () => void {
  const media = matchMedia(QUERY);
  media.addEventListener("change", changed);
  return () => media.removeEventListener("change", changed);
}

/** Whether the screen has space for one column only. */
export const useNarrowScreen = (): boolean => useSyncExternalStore(listen, () => matchMedia(QUERY).matches);
