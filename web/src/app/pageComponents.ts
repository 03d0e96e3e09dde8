import type { ComponentType } from "react";
import { lazyComponent } from "../ui/lazyComponent";
import { pageAt } from "./pages";

export type PageComponent = ComponentType<{ onSignedOut: () => void }> & { load: () => void };

const HistoryPage = lazyComponent(() => import("../features/history/HistoryPage"));
const DiffPage = lazyComponent(() => import("../features/diff/DiffPage"));

const COMPONENTS: Record<string, PageComponent> = {
  "/sessions": lazyComponent(() => import("../features/sessions/SessionsPage")),
  "/files": lazyComponent(() => import("../features/files/FilesPage")),
  "/terminal": lazyComponent(() => import("../features/terminal/TerminalPage")),
  "/preview": lazyComponent(() => import("../features/preview/PreviewPage")),
  "/network": lazyComponent(() => import("../features/network/NetworkPage")),
  "/connect": lazyComponent(() => import("../features/ssh/ConnectPage")),
  "/settings": lazyComponent(() => import("../features/settings/SettingsPage")),
};

/** The component of the page at a path. Its code is loaded when it is first drawn. */
export function componentAt(path: string): PageComponent {
  if (path === "/history/diff") return DiffPage;
  return COMPONENTS[pageAt(path)?.path ?? ""] ?? HistoryPage;
}
