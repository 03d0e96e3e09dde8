import { type MouseEvent, useContext, useSyncExternalStore } from "react";
import { PaneContext } from "./pane";

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

/** The path and the query of the page that is shown: on the whole screen, or in the pane around the component. */
export function useRoute(): { path: string; query: URLSearchParams } {
  const pane = useContext(PaneContext);
  const address = useSyncExternalStore(listen, () => pane?.address ?? currentAddress());
  const [path = "/", search = ""] = address.split("?");
  return { path, query: new URLSearchParams(search) };
}

export type Go = (to: string, options?: { replace?: boolean }) => void;

/** Shows a page on the whole screen. A page that can be in a pane uses `useGo`. */
export function go(to: string, options: { replace?: boolean } = {}): void {
  if (to === currentAddress()) return;
  if (options.replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  window.dispatchEvent(new Event(CHANGED));
}

/** Shows a page where the component is: in its pane, or on the whole screen. */
export const useGo = (): Go => useContext(PaneContext)?.go ?? go;

/** Follows a link of ours without loading the page again. A click that opens a new tab is left to the browser. */
export function followLink(event: MouseEvent, to: string, show: Go = go): void {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  show(to);
}

export const sessionPath = (id: string): string => `/sessions?id=${encodeURIComponent(id)}`;

export const filePath = (path: string, line?: number): string =>
  `/files?path=${encodeURIComponent(path)}${line === undefined ? "" : `&line=${line}`}`;
