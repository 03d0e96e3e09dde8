import type { IconName } from "../../ui/Icon";

/** The pages of the control center, in the order they are walked. */
export interface Place {
  path: string;
  title: string;
  icon: IconName;
  /** The key after `g` that goes there. */
  key: string;
}

export const PLACES: readonly Place[] = [
  { path: "/sessions", title: "Sessions", icon: "talk", key: "a" },
  { path: "/history", title: "History", icon: "history", key: "h" },
  { path: "/files", title: "Files", icon: "files", key: "f" },
  { path: "/terminal", title: "Terminal", icon: "terminal", key: "t" },
  { path: "/preview", title: "Preview", icon: "preview", key: "p" },
  { path: "/network", title: "Network", icon: "network", key: "n" },
  { path: "/connect", title: "Connect", icon: "connect", key: "c" },
  { path: "/settings", title: "Settings", icon: "settings", key: "s" },
];

/** Where the owner is when the address names no page. */
export const HOME = "/sessions";

export function placeOf(path: string): Place | undefined {
  return PLACES.find((place) => path === place.path || path.startsWith(`${place.path}/`));
}
