import { type MouseEvent, useSyncExternalStore } from "react";

const CHANGED = "freehold:route";

function listen(changed: () => void): () => void {
  window.addEventListener("popstate", changed);
  window.addEventListener(CHANGED, changed);
  return () => {
    window.removeEventListener("popstate", changed);
    window.removeEventListener(CHANGED, changed);
  };
}

const currentAddress = () => location.pathname + location.search;

/** The path and the query of the page that is shown. */
export function useRoute(): { path: string; query: URLSearchParams } {
  const address = useSyncExternalStore(listen, currentAddress);
  const [path = "/", search = ""] = address.split("?");
  return { path, query: new URLSearchParams(search) };
}

export function go(to: string, options: { replace?: boolean } = {}): void {
  if (to === currentAddress()) return;
  if (options.replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  window.dispatchEvent(new Event(CHANGED));
}

/** Follows a link of ours without loading the page again. A click that opens a new tab is left to the browser. */
export function followLink(event: MouseEvent, to: string): void {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(to);
}

export const sessionPath = (id: string): string => `/sessions?id=${encodeURIComponent(id)}`;

export const filePath = (path: string, line?: number): string =>
  `/files?path=${encodeURIComponent(path)}${line === undefined ? "" : `&line=${line}`}`;
