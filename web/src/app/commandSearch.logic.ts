export interface Command {
  id: string;
  title: string;
  /** The group that it belongs to, shown beside the title. */
  group: string;
  run: () => void;
}

/** So many rows are drawn at first, and so many more each time that the owner asks. */
export const ROWS = 100;

/**
 * How well a title matches what was typed; null for no match. Beginnings of words count most, then closeness. What is
 * the whole of a title, or the last name of a path, comes before what only begins with it.
 */
export function matchScore(title: string, typed: string): number | null {
  return scoreOf(title.toLowerCase(), typed.trim().toLowerCase());
}

function scoreOf(text: string, wanted: string): number | null {
  if (wanted === "") return 0;
  const at = text.indexOf(wanted);
  const isEnd = at >= 0 && at + wanted.length === text.length;
  if (at === 0) return isEnd ? 110 : 100;
  if (at > 0) {
    // The end decides for a name that is also in a folder before it.
    if (text.endsWith(wanted) && isWordStart(text, text.length - wanted.length)) return 90;
    return isWordStart(text, at) ? 80 : 60;
  }
  let from = 0;
  let gaps = 0;
  for (const letter of wanted) {
    const found = text.indexOf(letter, from);
    if (found < 0) return null;
    gaps += found - from;
    from = found + 1;
  }
  return 40 - Math.min(39, gaps);
}

const isWordStart = (text: string, at: number): boolean => /[\s/._-]/.test(text[at - 1] ?? "");

/** Everything that matches, best first. Equal matches keep their order. */
export function searchCommands(commands: readonly Command[], typed: string): Command[] {
  const wanted = typed.trim().toLowerCase();
  const byScore: Command[][] = [];
  for (const command of commands) {
    const points = scoreOf(command.title.toLowerCase(), wanted);
    if (points === null) continue;
    const equal = byScore[points];
    if (equal === undefined) byScore[points] = [command];
    else equal.push(command);
  }
  return byScore.reverse().flat();
}
