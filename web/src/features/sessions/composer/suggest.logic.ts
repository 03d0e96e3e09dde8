/** What is being typed that can be completed: a file after `@`, a command after a slash at the very beginning. */
export interface Token {
  kind: "file" | "command";
  /** Where the sign stands, and where the word ends. */
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

/** The text with the word in place of what was typed of it, and where the caret goes. */
export function complete(text: string, token: Token, word: string): { text: string; caret: number } {
  const sign = token.kind === "file" ? "@" : "/";
  const rest = text.slice(token.to);
  const put = `${sign}${word}${/^\s/.test(rest) ? "" : " "}`;
  return { text: text.slice(0, token.from) + put + rest, caret: token.from + put.length + (/^\s/.test(rest) ? 1 : 0) };
}

export interface Candidate {
  path: string;
  folder: boolean;
  lower: string;
  base: string;
}

export function candidateOf(path: string, kind: string): Candidate {
  const lower = path.toLowerCase();
  return { path, folder: kind === "folder", lower, base: lower.slice(lower.lastIndexOf("/") + 1) };
}

/** How well a path fits, smaller is better: its name begins so, holds it, the path holds it, or its letters come in order. */
function fit(one: Candidate, query: string): number | null {
  if (query === "") return one.folder ? 1 : 0;
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

export const MOST_SHOWN = 8;

/** The best few; the shorter path of two that fit alike. */
export function bestFiles(all: readonly Candidate[], query: string, most = MOST_SHOWN): Candidate[] {
  const wanted = query.toLowerCase();
  const tiers: Candidate[][] = [[], [], [], []];
  for (const one of all) {
    const tier = fit(one, wanted);
    if (tier !== null) tiers[tier]?.push(one);
  }
  const found: Candidate[] = [];
  for (const tier of tiers) {
    if (found.length >= most) break;
    tier.sort((a, b) => a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
    found.push(...tier.slice(0, most - found.length));
  }
  return found;
}

export interface Command {
  name: string;
  description: string;
}

export function bestCommands(all: readonly Command[], query: string, most = MOST_SHOWN): Command[] {
  const wanted = query.toLowerCase();
  return all
    .filter((one) => one.name.toLowerCase().includes(wanted))
    .sort((a, b) => Number(!a.name.toLowerCase().startsWith(wanted)) - Number(!b.name.toLowerCase().startsWith(wanted)) || a.name.localeCompare(b.name))
    .slice(0, most);
}

/** Of the files that were picked, those the text still names. */
export function namedFiles(text: string, picked: readonly string[]): string[] {
  return [...new Set(picked)].filter((path) => text.includes(`@${path}`));
}

/** The text without a file that it names. */
export function withoutFile(text: string, path: string): string {
  return text.split(`@${path} `).join("").split(`@${path}`).join("");
}
