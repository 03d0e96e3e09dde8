/** A word that can be completed: a file after `@`, or a command after `/` at the start of the message. */
export interface Token {
  kind: "file" | "command";
  /** The positions of the sign and of the end of the word. */
  from: number;
  to: number;
  query: string;
}

export function tokenAt(text: string, caret: number): Token | null {
  const before = text.slice(0, caret);
  const command = /^\/(\S*)$/.exec(before);
  if (command) return { kind: "command", from: 0, to: caret, query: command[1] ?? "" };
  const file = /(?:^|[\s([{"'])@([^\s@]*)$/.exec(before);
  if (file) return { kind: "file", from: caret - (file[1] ?? "").length - 1, to: caret, query: file[1] ?? "" };
  return null;
}

/** The text with the completed word, and the position of the caret. */
export function complete(text: string, token: Token, word: string): { text: string; caret: number } {
  const sign = token.kind === "file" ? "@" : "/";
  const rest = text.slice(token.to);
  const put = `${sign}${word}${/^\s/.test(rest) ? "" : " "}`;
  return { text: text.slice(0, token.from) + put + rest, caret: token.from + put.length + (/^\s/.test(rest) ? 1 : 0) };
}

export interface FileCandidate {
  path: string;
  isFolder: boolean;
  lower: string;
  base: string;
}

export function fileCandidate(path: string, kind: string): FileCandidate {
  const lower = path.toLowerCase();
  return { path, isFolder: kind === "folder", lower, base: lower.slice(lower.lastIndexOf("/") + 1) };
}

/** How well a path matches; smaller is better. Its name starts with the query, contains it, its path contains it, or its letters are in order. */
function matchRank(one: FileCandidate, query: string): number | null {
  if (query === "") return one.isFolder ? 1 : 0;
  if (one.base.startsWith(query)) return 0;
  if (one.base.includes(query)) return 1;
  if (one.lower.includes(query)) return 2;
  let at = 0;
  for (const letter of query) {
    at = one.lower.indexOf(letter, at) + 1;
    if (at === 0) return null;
  }
  return 3;
}

export const MAX_SHOWN = 8;

/** The best matches. Of two equal ones the shorter path comes first. */
export function bestFiles(all: readonly FileCandidate[], query: string, limit = MAX_SHOWN): FileCandidate[] {
  const wanted = query.toLowerCase();
  const tiers: FileCandidate[][] = [[], [], [], []];
  for (const one of all) {
    const tier = matchRank(one, wanted);
    if (tier !== null) tiers[tier]?.push(one);
  }
  const found: FileCandidate[] = [];
  for (const tier of tiers) {
    if (found.length >= limit) break;
    tier.sort((a, b) => a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
    found.push(...tier.slice(0, limit - found.length));
  }
  return found;
}

export interface Command {
  name: string;
  description: string;
}

export function bestCommands(all: readonly Command[], query: string, limit = MAX_SHOWN): Command[] {
  const wanted = query.toLowerCase();
  return all
    .filter((one) => one.name.toLowerCase().includes(wanted))
    .sort(
      (a, b) =>
        Number(!a.name.toLowerCase().startsWith(wanted)) - Number(!b.name.toLowerCase().startsWith(wanted)) ||
        a.name.localeCompare(b.name),
    )
    .slice(0, limit);
}

/** The picked files that the text still names. */
export function namedFiles(text: string, picked: readonly string[]): string[] {
  return [...new Set(picked)].filter((path) => text.includes(`@${path}`));
}

/** The text without the name of a file. */
export function withoutFile(text: string, path: string): string {
  return text.split(`@${path} `).join("").split(`@${path}`).join("");
}
