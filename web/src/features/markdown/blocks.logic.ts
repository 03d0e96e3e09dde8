const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
const DEFINITION = /^ {0,3}\[[^\]]+\]:/m;

/**
 * Splits Markdown into blocks that can be parsed one by one. While a message grows, only its last block changes. It is
 * split at empty lines outside of code, unless the next line continues the block. A text with link definitions stays
 * one block, because they apply to all of it.
 */
export function splitBlocks(text: string): string[] {
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

/** Whether a line opens a fence. In a list it may be indented. After backticks the rest must contain no backtick. */
function opens(line: string, block: readonly string[]): boolean {
  const inList = ITEM.test(block[0] ?? "");
  const found = FENCE.exec(inList ? line.trimStart() : line);
  return found !== null && !(found[1]?.startsWith("`") && found[2]?.includes("`"));
}
