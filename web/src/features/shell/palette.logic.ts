export interface Command {
  id: string;
  title: string;
  /** What kind of thing it is, shown small. */
  group: string;
  run: () => void;
}

/** How well a title answers what was typed; null when it does not. Word beginnings count most, then closeness. */
export function score(title: string, typed: string): number | null {
  const text = title.toLowerCase();
  const wanted = typed.trim().toLowerCase();
  if (wanted === "") return 0;
  const at = text.indexOf(wanted);
  if (at === 0) return 100;
  if (at > 0) return /[\s/._-]/.test(text[at - 1] ?? "") ? 80 : 60;
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

export function choose(commands: readonly Command[], typed: string, most = 30): Command[] {
  return commands
    .map((command) => ({ command, points: score(command.title, typed) }))
    .filter((found): found is { command: Command; points: number } => found.points !== null)
    .sort((a, b) => b.points - a.points)
    .slice(0, most)
    .map((found) => found.command);
}
