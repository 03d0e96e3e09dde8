import type { IconName } from "../../ui/Icon";

export type WorkbenchTab = "changes" | "preview" | "files" | "git" | "terminal" | "plan" | "session";

export interface TabDeclaration {
  tab: WorkbenchTab;
  label: string;
  icon: IconName;
  /** The path of the page that it shows; null when it shows a part of the session. */
  path: string | null;
}

export const TABS: readonly TabDeclaration[] = [
  { tab: "changes", label: "Changes", icon: "edit", path: "/history/diff" },
  { tab: "preview", label: "Preview", icon: "preview", path: "/preview" },
  { tab: "files", label: "Files", icon: "files", path: "/files" },
  { tab: "git", label: "Git", icon: "branch", path: "/git" },
  { tab: "terminal", label: "Terminal", icon: "terminal", path: "/terminal" },
  { tab: "plan", label: "Plan", icon: "plan", path: null },
  { tab: "session", label: "Another session", icon: "talk", path: "/sessions" },
];

/** The tab that shows the page at an address; null when none does. */
export function tabAt(address: string): WorkbenchTab | null {
  const path = address.split("?")[0];
  return TABS.find((one) => one.path === path)?.tab ?? null;
}

/** The session that an address names; null when it names none. */
export function sessionAt(address: string): string | null {
  const [path, search = ""] = address.split("?");
  return path === "/sessions" ? new URLSearchParams(search).get("id") : null;
}

/** What the owner chose, for all sessions. */
export interface WorkbenchLayout {
  isOpen: boolean;
  tab: WorkbenchTab;
  /** The part of the width that the pane has. */
  share: number;
  /** The session that is shown beside another; null until one is chosen. */
  beside: string | null;
}

/** Pixels of the screen from which the pane is open at first. */
const OPEN_FROM = 1_500;
const FIRST_SHARE = 0.45;

export function readLayout(stored: string | null, screen: number): WorkbenchLayout {
  const layout: WorkbenchLayout = { isOpen: screen >= OPEN_FROM, tab: "changes", share: FIRST_SHARE, beside: null };
  try {
    const { isOpen, tab, share, beside } = JSON.parse(stored ?? "{}") as Record<string, unknown>;
    if (typeof isOpen === "boolean") layout.isOpen = isOpen;
    if (TABS.some((one) => one.tab === tab)) layout.tab = tab as WorkbenchTab;
    if (typeof share === "number" && share > 0 && share < 1) layout.share = share;
    if (typeof beside === "string") layout.beside = beside;
  } catch {
    // It was written by another version, or by hand.
  }
  return layout;
}

/** Pixels that the pane and the conversation have at least. */
const MIN_PANE = 320;
const MIN_CONVERSATION = 400;

/** The smallest and the largest share of a pane in this width. */
export function shareLimits(width: number): { min: number; max: number } {
  if (width < MIN_PANE + MIN_CONVERSATION) return { min: 0.5, max: 0.5 };
  return { min: MIN_PANE / width, max: 1 - MIN_CONVERSATION / width };
}

export function fitShare(share: number, width: number): number {
  const { min, max } = shareLimits(width);
  return Math.min(max, Math.max(min, share));
}

/** Pixels by which an arrow key moves the edge. */
const KEY_STEP = 32;

/** The share after a key on the edge of the pane; null when the key does nothing. */
export function shareAfterKey(key: string, share: number, width: number): number | null {
  const { min, max } = shareLimits(width);
  switch (key) {
    case "ArrowLeft":
      return fitShare(share + KEY_STEP / width, width);
    case "ArrowRight":
      return fitShare(share - KEY_STEP / width, width);
    case "Home":
      return min;
    case "End":
      return max;
    default:
      return null;
  }
}

/** The tab after a key on the list of tabs; null when the key does nothing. */
export function tabAfterKey(key: string, tab: WorkbenchTab): WorkbenchTab | null {
  const at = TABS.findIndex((one) => one.tab === tab);
  const steps: Record<string, number> = {
    ArrowDown: at + 1,
    ArrowRight: at + 1,
    ArrowUp: at - 1 + TABS.length,
    ArrowLeft: at - 1 + TABS.length,
    Home: 0,
    End: TABS.length - 1,
  };
  const to = steps[key];
  return to === undefined ? null : (TABS[to % TABS.length]?.tab ?? null);
}
