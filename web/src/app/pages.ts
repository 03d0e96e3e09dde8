import type { IconName } from "../ui/Icon";

/** A page of the control center. */
export interface Page {
  path: string;
  title: string;
  icon: IconName;
  /** The key that opens it after `g`. */
  key: string;
}

export const PAGES: readonly Page[] = [
  { path: "/sessions", title: "Sessions", icon: "talk", key: "a" },
  { path: "/history", title: "History", icon: "history", key: "h" },
  { path: "/files", title: "Files", icon: "files", key: "f" },
  { path: "/terminal", title: "Terminal", icon: "terminal", key: "t" },
  { path: "/preview", title: "Preview", icon: "preview", key: "p" },
  { path: "/network", title: "Network", icon: "network", key: "n" },
  { path: "/connect", title: "Connect", icon: "connect", key: "c" },
  { path: "/settings", title: "Settings", icon: "settings", key: "s" },
];

/** The page that is shown at `/`. */
export const START_PAGE = "/sessions";

export function pageAt(path: string): Page | undefined {
  return PAGES.find((page) => path === page.path || path.startsWith(`${page.path}/`));
}
