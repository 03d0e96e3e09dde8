export type Target = { kind: "web"; href: string; host: string } | { kind: "file"; path: string } | { kind: "none" };

const SCHEME = /^[a-z][a-z0-9+.-]*:/i;

/** A path below the workspace as the Files page calls it; null for any other place. */
export function workspacePath(path: string): string | null {
  const inside = path.startsWith("/") ? (path.startsWith("/workspace/") ? path.slice("/workspace/".length) : null) : path;
  const parts = inside?.split("/").filter((part) => part !== "" && part !== ".") ?? [];
  return parts.length === 0 || parts.includes("..") ? null : parts.join("/");
}

/** Where a link in an agent's words may lead: the web or mail, in a new tab, or a file of the workspace; nowhere else. */
export function targetOf(href: string): Target {
  const wanted = href.trim();
  if (/[\u0000-\u001f\u007f]/.test(wanted)) return { kind: "none" };
  if (SCHEME.test(wanted)) {
    try {
      const url = new URL(wanted);
      if (url.protocol === "mailto:") return { kind: "web", href: url.href, host: url.pathname };
      if (url.protocol === "http:" || url.protocol === "https:") return { kind: "web", href: url.href, host: url.host };
    } catch {
      return { kind: "none" };
    }
    // `main.py:12` has what looks like a scheme and is a place in a file.
    if (!/^[^/]+\.\w+:\d+/.test(wanted)) return { kind: "none" };
  }
  if (wanted.startsWith("//") || wanted.startsWith("#") || wanted.startsWith("?") || wanted.includes("\\")) return { kind: "none" };
  let path = wanted.replace(/[#?].*$/, "").replace(/(?::\d+){1,2}$/, "");
  try {
    path = decodeURIComponent(path);
  } catch {
    return { kind: "none" };
  }
  const file = workspacePath(path);
  return file === null ? { kind: "none" } : { kind: "file", path: file };
}

/** The host to tell beside a link whose words name another place than where it leads; empty when they are honest. */
export function hostToTell(words: string, target: Target): string {
  if (target.kind !== "web") return "";
  const named = /(?:https?:\/\/)?((?:[\w-]+\.)+[a-z]{2,})/i.exec(words)?.[1]?.toLowerCase();
  if (named === undefined || /\.(?:py|js|ts|tsx|md|rs|go|css|html|json|sh|txt)$/.test(named)) return "";
  const host = target.host.toLowerCase().replace(/:\d+$/, "");
  return host === named || host.endsWith(`@${named}`) ? "" : target.host;
}
