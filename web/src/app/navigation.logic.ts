import { PAGE_GROUPS, type PageDeclaration, type PageGroup } from "../ui/page";

/** The pages to offer: those of slots and features that are off only while they are shown. */
export function pagesToOffer(
  pages: readonly PageDeclaration[],
  on: readonly string[],
  current: PageDeclaration | undefined,
): PageDeclaration[] {
  return pages.filter((page) => {
    const needed = page.slot ?? page.feature;
    return needed === undefined || on.includes(needed) || page === current;
  });
}

export interface PagesOfGroup {
  group: PageGroup;
  pages: readonly PageDeclaration[];
}

/** The groups that have a page to offer. */
export function groupsToOffer(pages: readonly PageDeclaration[]): PagesOfGroup[] {
  return PAGE_GROUPS.map((group) => ({ group, pages: pages.filter((page) => page.group === group) })).filter(
    (one) => one.pages.length > 0,
  );
}

/** The group that a page is folded into, if it is in one. */
export function pageGroup(page: PageDeclaration | undefined): PageGroup | null {
  return PAGE_GROUPS.find((group) => group === page?.group) ?? null;
}

/** The groups that the owner opened, as the browser keeps them. */
export function readOpenGroups(stored: string | null): PageGroup[] {
  const names = (stored ?? "").split(",");
  return PAGE_GROUPS.filter((group) => names.includes(group));
}

export function toggleGroup(open: readonly PageGroup[], group: PageGroup): PageGroup[] {
  return PAGE_GROUPS.filter((one) => (one === group ? !open.includes(one) : open.includes(one)));
}
