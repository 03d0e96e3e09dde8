/** Files that are open at the same time. The one that was opened longest ago goes first when there are too many. */
export const MAX_TABS = 12;

/** The tabs with a file that was opened. One that is open keeps its place. */
export function withTab(tabs: readonly string[], path: string): readonly string[] {
  return tabs.includes(path) ? tabs : [...tabs, path].slice(-MAX_TABS);
}

/** The file to show after a tab was closed: its right neighbour, else the left one; null when it was the last. */
export function neighbourOf(tabs: readonly string[], path: string): string | null {
  const at = tabs.indexOf(path);
  return tabs[at + 1] ?? tabs[at - 1] ?? null;
}

/** The tabs after a file was renamed, or removed when `to` is null. */
export function withRenamed(tabs: readonly string[], from: string, to: string | null): readonly string[] {
  return tabs.flatMap((tab) => (tab !== from ? [tab] : to === null ? [] : [to]));
}

/** What was stored. Anything else than a list of texts is no list of tabs. */
export function readTabs(stored: string | null): readonly string[] {
  try {
    const found: unknown = JSON.parse(stored ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string").slice(-MAX_TABS) : [];
  } catch {
    return [];
  }
}

/** The shortest ends of the paths that differ from each other. */
export function tabNames(tabs: readonly string[]): Map<string, string> {
  const nameOf = (path: string, parts: number) => path.split("/").slice(-parts).join("/");
  return new Map(
    tabs.map((path) => {
      let parts = 1;
      while (
        parts < path.split("/").length &&
        tabs.some((other) => other !== path && nameOf(other, parts) === nameOf(path, parts))
      )
        parts++;
      return [path, nameOf(path, parts)];
    }),
  );
}
