import type { ComponentType } from "react";
import type { IconName } from "./Icon";

/** The groups of pages that the navigation folds, in their order. */
export const PAGE_GROUPS = ["Workspace", "Agents", "Automation", "System"] as const;
export type PageGroup = (typeof PAGE_GROUPS)[number];

/** A page of the control center, as the feature that owns it declares it in its `page.ts`. */
export interface PageDeclaration {
  path: string;
  title: string;
  icon: IconName;
  /** The key that opens it after `g`. */
  key: string;
  /** Its group. Pages at the start and at the end of the navigation are always seen; a phone has those of the start. */
  group: "start" | PageGroup | "end";
  /** The place in the navigation. */
  order: number;
  /** The page of the documentation about it, below `/docs/`. */
  guide: string;
  /** The slot that it shows. While the slot is off, the page is not in the navigation. */
  slot?: string;
  /** The feature that it belongs to, where that can be off. While it is, the page is not in the navigation. */
  feature?: string;
  load: () => Promise<{ default: ComponentType<{ onSignedOut: () => void }> }>;
}
