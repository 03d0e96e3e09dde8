import type { PageDeclaration } from "../ui/page";

/** So many pages fit beside each other on a phone. */
export const MAX_BAR = 8;
/** Of more pages the bar shows the first ones, and a button opens the others. */
export const BAR_WITH_MORE = 4;

/** The pages to offer: those of slots that are off only while they are shown. */
export function pagesToOffer(
  pages: readonly PageDeclaration[],
  slots: readonly string[],
  current: PageDeclaration | undefined,
): PageDeclaration[] {
  return pages.filter((page) => page.slot === undefined || slots.includes(page.slot) || page === current);
}

/** How many of so many pages the bar of a phone shows. */
export function barLength(count: number): number {
  return count <= MAX_BAR ? count : BAR_WITH_MORE;
}
