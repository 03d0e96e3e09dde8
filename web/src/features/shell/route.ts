import { useSyncExternalStore } from "react";

const CHANGED = "freehold:route";

function listen(changed: () => void): () => void {
  window.addEventListener("popstate", changed);
  window.addEventListener(CHANGED, changed);
  return () => {
    window.removeEventListener("popstate", changed);
    window.removeEventListener(CHANGED, changed);
  };
}

const here = () => location.pathname + location.search;

/** Where the owner is: the path and the query. */
export function useRoute(): { path: string; query: URLSearchParams } {
  const at = useSyncExternalStore(listen, here);
  const [path = "/", search = ""] = at.split("?");
  return { path, query: new URLSearchParams(search) };
}

export function go(to: string, how: { replace?: boolean } = {}): void {
  if (to === here()) return;
  if (how.replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  window.dispatchEvent(new Event(CHANGED));
}
