import type { PageDeclaration } from "../ui/page";

const declared = import.meta.glob<PageDeclaration>("../features/*/page.ts", { eager: true, import: "page" });

/** The pages of all features. A feature declares its page in its own folder. */
export const PAGES: readonly PageDeclaration[] = Object.values(declared).sort((one, other) => one.order - other.order);

/** The page that is shown at `/`. */
export const START_PAGE = "/sessions";

export function pageAt(path: string): PageDeclaration | undefined {
  return PAGES.find((page) => path === page.path || path.startsWith(`${page.path}/`));
}
