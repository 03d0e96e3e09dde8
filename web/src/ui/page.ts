import type { ComponentType } from "react";
import type { IconName } from "./Icon";

/** A page of the control center, as the feature that owns it declares it in its `page.ts`. */
export interface PageDeclaration {
  path: string;
  title: string;
  icon: IconName;
  /** The key that opens it after `g`. */
  key: string;
  /** The place in the navigation. */
  order: number;
  /** The slot that it shows. While the slot is off, the page is not in the navigation. */
  slot?: string;
  load: () => Promise<{ default: ComponentType<{ onSignedOut: () => void }> }>;
}
