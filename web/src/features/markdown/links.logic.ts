export type LinkTarget =
  | { kind: "web"; href: string; host: string }
  | { kind: "file"; path: string }
  | { kind: "none" };

const MAX_SEARCHED = 500;
const SCHEME = /^[a-z][a-z0-9+.-]*:/i;

/** A path relative to the workspace; null when it is elsewhere. */
export function workspacePath(path: string): string | null {
  const inside = path.startsWith("/")
    ? path.startsWith("/workspace/")
      ? path.slice("/workspace/".length)
      : null
    : path;
  const parts = inside?.split("/").filter((part) => part !== "" && part !== ".") ?? [];
  return parts.length === 0 || parts.includes("..") ? null : parts.join("/");
}

/** Where a link in an agent's message may lead: the web, mail, or a file of the workspace. */
export function linkTarget(href: string): LinkTarget {
  const wanted = href.trim();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: links with control characters are refused
  if (/[\u0000-\u001f\u007f]/.test(wanted)) return { kind: "none" };
  if (SCHEME.test(wanted)) {
    try {
      const url = new URL(wanted);
      if (url.protocol === "mailto:") return { kind: "web", href: url.href, host: url.pathname };
      if (url.protocol === "http:" || url.protocol === "https:") return { kind: "web", href: url.href, host: url.host };
    } catch {
      return { kind: "none" };
    }
    // `main.py:12` looks like a scheme but is a line in a file.
    if (!/^[^/]+\.\w+:\d+/.test(wanted)) return { kind: "none" };
  }
  if (wanted.startsWith("//") || wanted.startsWith("#") || wanted.startsWith("?") || wanted.includes("\\"))
    return { kind: "none" };
  let path = wanted.replace(/[#?].*$/, "").replace(/(?::\d+){1,2}$/, "");
  try {
    path = decodeURIComponent(path);
  } catch {
    return { kind: "none" };
  }
  const file = workspacePath(path);
  return file === null ? { kind: "none" } : { kind: "file", path: file };
}

/** The host to show beside a link whose text names another host; empty when they agree. */
export function misleadingHost(words: string, target: LinkTarget): string {
  if (target.kind !== "web") return "";
  // A text that is too long to be searched for a host may name any.
  if (words.length > MAX_SEARCHED) return target.host;
  const named = /(?:https?:\/\/)?((?:[\w-]+\.)+[a-z]{2,})/i.exec(words)?.[1]?.toLowerCase();
  if (named === undefined || /\.(?:py|js|ts|tsx|md|rs|go|css|html|json|sh|txt)$/.test(named)) return "";
  const host = target.host.toLowerCase().replace(/:\d+$/, "");
  return host === named || host.endsWith(`@${named}`) ? "" : target.host;
}
