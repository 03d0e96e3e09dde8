const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
const DEFINITION = /^ {0,3}\[[^\]]+\]:/m;

/**
 * A message in pieces that are read one by one, so that a long one that still grows is not read anew with each word:
 * all but the last stay as they are. Cuts only where Markdown itself ends a block, at an empty line outside of code
 * that what follows does not continue. One with definitions is a single piece: they reach across.
 */
export function blocksOf(text: string): string[] {
  if (DEFINITION.test(text)) return [text];
  const blocks: string[] = [];
  let block: string[] = [];
  let fence: { mark: string; length: number } | null = null;
  let blank = false;
  for (const line of text.split("\n")) {
    const empty = line.trim() === "";
    if (fence === null && !empty && blank && block.length > 0 && !continues(block, line)) {
      blocks.push(block.join("\n"));
      block = [];
    }
    if (empty && block.length === 0) continue;
    block.push(line);
    blank = empty && fence === null;
    const found = /^\s*(`{3,}|~{3,})(.*)$/.exec(line);
    if (found === null) continue;
    const [, marks = "", rest = ""] = found;
    if (fence === null) {
      if (opens(line, block)) fence = { mark: marks[0] ?? "`", length: marks.length };
    } else if (marks[0] === fence.mark && marks.length >= fence.length && rest.trim() === "") fence = null;
  }
  if (block.some((line) => line.trim() !== "")) blocks.push(block.join("\n"));
  return blocks;
}

function continues(block: readonly string[], line: string): boolean {
  if (/^\s/.test(line)) return true;
  return ITEM.test(line) && ITEM.test(block[0] ?? "");
}

/** A fence may stand deeper inside of a list; elsewhere four spaces make it code. A tick in its words makes it none. */
function opens(line: string, block: readonly string[]): boolean {
  const inList = ITEM.test(block[0] ?? "");
  const found = FENCE.exec(inList ? line.trimStart() : line);
  return found !== null && !(found[1]?.startsWith("`") && found[2]?.includes("`"));
}
