import { useSyncExternalStore } from "react";
import { useIsInPane } from "./pane";

const QUERY = "(max-width: 760px)";

function listen(changed: () => void): () => void {
  const media = matchMedia(QUERY);
  media.addEventListener("change", changed);
  return () => media.removeEventListener("change", changed);
}

/** Whether there is space for one column only: on a small screen, and in a pane. */
export function useNarrowScreen(): boolean {
  const isInPane = useIsInPane();
  return useSyncExternalStore(listen, () => matchMedia(QUERY).matches) || isInPane;
}
