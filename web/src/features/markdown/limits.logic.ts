import { PART_LENGTH } from "../../ui/plainText.logic";

/**
 * The limits of what is parsed as Markdown. The parser needs time that grows with the square of some inputs, and a call
 * for each level of others. One scan over the text, in time that grows with its length, finds them before it runs.
 */

/** Characters of one block. */
export const MAX_BLOCK = 16_000;
const MAX_LINE = 8_000;
/** Levels of quotes and lists. */
const MAX_DEPTH = 24;
/** Marks in one paragraph: the parser compares each `*`, `_` or `~` with all others, and looks for the end of each tag and code. */
const MAX_EMPHASIS = 800;
const MAX_BRACKETS = 400;
const MAX_TAGS = 150;
const MAX_TICKS = 800;
const MAX_UNDERLINES = 50;
const MAX_CELLS = 2_000;
/** What may become an element. */
const MAX_NODES = 2_500;
/** Lines times their depth: the parser looks at every level again in each line. */
const MAX_WORK = 10_000;

const UNDERLINE = /^[ >]{0,8}(?:=+|-+)\s*$/;
const DELIMITERS = /^[\s>|:-]*-[\s|:-]*$/;
/** A line that begins a paragraph of its own. */
const STARTS_PARAGRAPH = /^ {0,3}[-+*] {1,4}\S/;

/** Marks above one letter, which take a browser long to draw. */
const MANY_MARKS = /\p{M}{17}/u;

/** Whether a block would take the parser too long, or too many nested calls. Such a block is shown as plain text. */
export function isTooComplex(block: string): boolean {
  if (block.length > MAX_BLOCK || MANY_MARKS.test(block)) return true;
  let [nodes, underlines, work, columns, lines, deepest] = [0, 0, 0, 0, 0, 0];
  let paragraph = { emphasis: 0, brackets: 0, tags: 0, ticks: 0 };
  for (const line of block.split(/\r\n|\n|\r/)) {
    if (line.length > MAX_LINE) return true;
    const { markers, depth } = containersOf(line);
    const marks = countMarks(line);
    if (line.trim() === "" || STARTS_PARAGRAPH.test(line)) paragraph = { emphasis: 0, brackets: 0, tags: 0, ticks: 0 };
    paragraph.emphasis += marks.emphasis;
    paragraph.brackets += marks.brackets;
    paragraph.tags += marks.tags;
    paragraph.ticks += marks.ticks;
    deepest = Math.max(deepest, depth);
    nodes += 1 + markers + marks.emphasis / 2 + marks.brackets + (marks.ticks + marks.others) / 2;
    underlines += UNDERLINE.test(line) ? 1 : 0;
    work += 1 + deepest;
    lines++;
    if (DELIMITERS.test(line)) columns = Math.max(columns, marks.pipes + 1);
    if (
      depth > MAX_DEPTH ||
      paragraph.emphasis > MAX_EMPHASIS ||
      paragraph.brackets > MAX_BRACKETS ||
      paragraph.tags > MAX_TAGS ||
      paragraph.ticks > MAX_TICKS ||
      underlines > MAX_UNDERLINES ||
      nodes > MAX_NODES ||
      work > MAX_WORK
    )
      return true;
  }
  // A row of a table gets all columns, also those that it leaves out.
  return columns * lines > MAX_CELLS;
}

/** The markers of quotes and lists at the start of a line, and the deepest level that they can be at. */
function containersOf(line: string): { markers: number; depth: number } {
  let [at, markers, indent] = [0, 0, 0];
  for (;;) {
    while (line[at] === " " || line[at] === "\t") indent += line[at++] === "\t" ? 4 : 1;
    const length = markerLength(line, at);
    if (length === 0) break;
    at += length;
    markers++;
  }
  return { markers, depth: markers === 0 ? 0 : markers + Math.floor(Math.max(0, indent - markers) / 2) };
}

function markerLength(line: string, at: number): number {
  const char = line[at];
  if (char === ">") return 1;
  const isEnd = (index: number) => index >= line.length || line[index] === " " || line[index] === "\t";
  if (char === "-" || char === "+" || char === "*") return isEnd(at + 1) ? 1 : 0;
  let digits = 0;
  while (digits < 10 && isDigit(line.charCodeAt(at + digits))) digits++;
  const mark = line[at + digits];
  return digits > 0 && (mark === "." || mark === ")") && isEnd(at + digits + 1) ? digits + 1 : 0;
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

interface Marks {
  emphasis: number;
  brackets: number;
  tags: number;
  ticks: number;
  pipes: number;
  others: number;
}

function countMarks(line: string): Marks {
  const marks: Marks = { emphasis: 0, brackets: 0, tags: 0, ticks: 0, pipes: 0, others: 0 };
  for (let at = 0; at < line.length; at++) {
    const char = line[at];
    if (char === "*" || char === "_" || char === "~") marks.emphasis++;
    else if (char === "[" || char === "]") marks.brackets++;
    else if (char === "<") marks.tags++;
    else if (char === "`") marks.ticks++;
    else if (char === "|") marks.pipes++;
    else if (char === "@" || char === "&" || char === "\\") marks.others++;
  }
  return marks;
}

/** Characters of a message that are drawn. The rest follows when the owner asks for it. */
export const PAGE_LENGTH = 16_000;
/** Characters that are drawn at once. The rest of the page follows, with pauses for the owner. */
export const FIRST_LENGTH = 3_000;

/** How many blocks fit into so many characters, at least one. Of a long block only the start is drawn. */
export function blocksWithin(blocks: readonly string[], length: number): number {
  let [count, sum] = [0, 0];
  for (const block of blocks) {
    sum += Math.min(block.length, PART_LENGTH);
    if (count > 0 && sum > length) break;
    count++;
  }
  return count;
}
