const MAX_SHARED = 20_000;

/** What another app shared with Freehold, as the begin of a message; null when nothing was shared. */
export function sharedText(query: URLSearchParams): string | null {
  const parts = ["share_title", "share_text", "share_url"].map((name) => query.get(name)?.trim() ?? "");
  const different = parts.filter(
    (part, at) =>
      part !== "" &&
      !parts.some((other, place) => place !== at && other.includes(part) && (other !== part || place < at)),
  );
  if (different.length === 0 && !hasSharedFiles(query)) return null;
  return different.join("\n").slice(0, MAX_SHARED);
}

export const hasSharedFiles = (query: URLSearchParams): boolean => query.has("share_files");
