import type { ComponentType } from "react";
import { lazyComponent } from "../ui/lazyComponent";
import { PAGES, pageAt } from "./pages";

export type PageComponent = ComponentType<{ onSignedOut: () => void }> & { load: () => void };

const DiffPage = lazyComponent(() => import("../features/diff/DiffPage"));

const COMPONENTS = new Map<string, PageComponent>(PAGES.map((page) => [page.path, lazyComponent(page.load)]));

/** The page that is shown at a path that no page has. */
const FALLBACK_PAGE = "/history";

/** The component of the page at a path. Its code is loaded when it is first drawn. */
export function componentAt(path: string): PageComponent {
  if (path === "/history/diff") return DiffPage;
  const component = COMPONENTS.get(pageAt(path)?.path ?? FALLBACK_PAGE);
  if (component === undefined) throw new Error(`No feature declares the page ${FALLBACK_PAGE}`);
  return component;
}
