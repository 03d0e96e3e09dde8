import { createContext, useContext } from "react";
import { type Go, go } from "../../ui/route";

export interface WorkbenchShared {
  /** Shows a page in the pane: beside the conversation where there is space, and over it on a small screen. */
  show: Go;
  isOpen: boolean;
  /** Opens and closes the pane; null inside it. */
  toggle: (() => void) | null;
}

export const WorkbenchContext = createContext<WorkbenchShared | null>(null);

export const useShowBeside = (): Go => useContext(WorkbenchContext)?.show ?? go;

/** Whether the pane is open, and how to change that; null where there is no pane. */
export const useWorkbench = (): WorkbenchShared | null => useContext(WorkbenchContext);
