import { MAX_BLOCK } from "./limits.logic";

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
const DEFINITION = /^ {0,3}\[[^\]\n]{1,1000}\]:/m;
/** A list that is longer is split between two of its items. */
const LONG_BLOCK = 4_000;

/**
 * Splits Markdown into blocks that can be parsed one by one. While a message grows, only its last block changes. It is
 * split at empty lines outside of code, unless the next line continues the block. A text with link definitions stays
 * one block, because they apply to all of it, unless it is too long to be parsed as one.
 */
export function splitBlocks(text: string): string[] {
  if (text.length <= MAX_BLOCK && DEFINITION.test(text)) return [text];
  const blocks: string[] = [];
  let block: string[] = [];
  let fence: { mark: string; length: number } | null = null;
  let blank = false;
  let length = 0;
  /** Whether the block is code whose fence is closed. */
  let isFenced = false;
  for (const line of text.split("\n")) {
    const empty = line.trim() === "";
    const canSplit = fence === null && !empty && block.length > 0;
    if (
      canSplit &&
      ((blank && !continues(block, line)) ||
        (length > LONG_BLOCK && areItems(block, line)) ||
        isFenced ||
        (!isList(block) && opens(line, block)))
    ) {
      blocks.push(block.join("\n"));
      block = [];
      length = 0;
      isFenced = false;
    }
    if (empty && block.length === 0) continue;
    block.push(line);
    length += line.length + 1;
    blank = empty && fence === null;
    const found = /^\s*(`{3,}|~{3,})(.*)$/.exec(line);
    if (found === null) continue;
    const [, marks = "", rest = ""] = found;
    if (fence === null) {
      if (opens(line, block)) fence = { mark: marks[0] ?? "`", length: marks.length };
    } else if (marks[0] === fence.mark && marks.length >= fence.length && rest.trim() === "") {
      fence = null;
      isFenced = !isList(block);
    }
  }
  if (block.some((line) => line.trim() !== "")) blocks.push(block.join("\n"));
  return blocks;
}

function continues(block: readonly string[], line: string): boolean {
  return /^\s/.test(line) || areItems(block, line);
}

const isList = (block: readonly string[]): boolean => ITEM.test(block[0] ?? "");

const areItems = (block: readonly string[], line: string): boolean => ITEM.test(line) && isList(block);

/** Whether a line opens a fence. In a list it may be indented. After backticks the rest must contain no backtick. */
function opens(line: string, block: readonly string[]): boolean {
  const found = FENCE.exec(isList(block) ? line.trimStart() : line);
  return found !== null && !(found[1]?.startsWith("`") && found[2]?.includes("`"));
}

export interface Code {
  language: string;
  text: string;
}

/** The code of a block that is nothing else; null for other blocks. It needs no parser, however long it is. */
export function codeOf(block: string): Code | null {
  const lines = block.trimEnd().split("\n");
  const found = FENCE.exec(lines[0] ?? "");
  if (found === null || !opens(lines[0] ?? "", [])) return null;
  const [, marks = "", info = ""] = found;
  const closes = (line: string) => {
    const [, end = "", rest = ""] = FENCE.exec(line) ?? [];
    return end[0] === marks[0] && end.length >= marks.length && rest.trim() === "";
  };
  const end = lines.findIndex((line, index) => index > 0 && closes(line));
  if (end >= 0 && end < lines.length - 1) return null;
  const language = /^[\w+#.-]{1,30}/.exec(info.trim())?.[0] ?? "";
  return { language, text: lines.slice(1, end < 0 ? undefined : end).join("\n") };
}
