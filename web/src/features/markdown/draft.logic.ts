/**
 * Markdown without its marks, roughly and at once: what is shown until the parser is loaded. It has about the size and
 * the words of the formatted text, so that little moves when that replaces it. Each pattern needs time that grows with
 * the length of a line only.
 */

/** Words of a line that look alike. */
export interface DraftPiece {
  kind: "text" | "strong" | "code" | "link";
  text: string;
}

export interface Draft {
  kind: "heading" | "paragraph" | "lines";
  /** The level of a heading; 0 for the others. */
  level: number;
  lines: DraftPiece[][];
}

const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const ITEM = /^(\s*)(?:[-*+]|(\d{1,9}[.)]))\s+(?:\[([ xX])\]\s+)?/;
/** A line of a quote, a table or code, or an item of a list. */
const OWN_LINE = /^\s*(?:>|\||`{3}|~{3}|[-*+]\s|\d{1,9}[.)]\s)/;
/** A rule, or the line below the head of a table. */
const RULE = /^[\s>|:-]+$/;

/** A block of Markdown as the words that are shown of it. */
export function draftOf(block: string): Draft {
  const lines = block
    .trim()
    .split("\n")
    .filter((line) => line.trim() !== "" && !RULE.test(line));
  const [, marks = "", title = ""] = HEADING.exec(lines[0] ?? "") ?? [];
  if (marks !== "" && lines.length === 1) return { kind: "heading", level: marks.length, lines: [wordsOf(title)] };
  if (!lines.some((line) => OWN_LINE.test(line))) return { kind: "paragraph", level: 0, lines: lines.map(wordsOf) };
  return { kind: "lines", level: 0, lines: lines.map(lineOf) };
}

function lineOf(line: string): DraftPiece[] {
  const item = ITEM.exec(line);
  if (item === null) return wordsOf(line.replace(/^\s*(?:>\s?)+/, "").replace(/^\||\|$/g, ""));
  const [mark, indent = "", number, box] = item;
  const sign = box === undefined ? (number ?? "•") : box === " " ? "☐" : "☑";
  return [{ kind: "text", text: `${indent}${sign} ` }, ...wordsOf(line.slice(mark.length))];
}

/** An image, a link, code, or a mark of emphasis. */
const MARK = /(!?\[[^[\]]{0,300}\]\([^()\s]{0,2000}\)|`[^`]*`|\*\*|~~|`)/;

/** A line without the marks of links, images, code and emphasis. */
function wordsOf(line: string): DraftPiece[] {
  let isStrong = false;
  return line.split(MARK).flatMap((part, index): DraftPiece[] => {
    // Every second part is a mark.
    if (index % 2 === 0) return part === "" ? [] : [{ kind: isStrong ? "strong" : "text", text: part }];
    if (part === "**") isStrong = !isStrong;
    const [kind, text] = shownOf(part);
    return text === "" ? [] : [{ kind, text }];
  });
}

function shownOf(mark: string): [DraftPiece["kind"], string] {
  const name = mark.slice(mark.indexOf("[") + 1, mark.indexOf("]")).replace(/\*\*|~~|`/g, "");
  if (mark.startsWith("![")) return ["link", `[image: ${name}]`];
  if (mark.startsWith("[")) return ["link", name];
  return ["code", mark.length > 2 && mark.startsWith("`") ? mark.slice(1, -1) : ""];
}
