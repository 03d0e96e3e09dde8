/** Characters that are drawn at once. A browser needs seconds to break a line of some 100,000. */
import { LANGUAGE } from "../language/translation";
export const PART_LENGTH = 10_000;
export const MAX_LINE = 2_000;

/** The first parts of a text, and how many characters are left out. No part ends within a character. */
export function cutText(text: string, parts: number): { shown: string[]; hidden: number } {
  const shown: string[] = [];
  let at = 0;
  while (shown.length < parts && at < text.length) {
    const end = endWithin(text, at + PART_LENGTH);
    shown.push(text.slice(at, end));
    at = end;
  }
  return { shown, hidden: text.length - at };
}

/** The start of one line, and how many characters are left out. */
export function cutLine(line: string, length = MAX_LINE): { shown: string; hidden: number } {
  if (line.length <= length) return { shown: line, hidden: 0 };
  const end = endWithin(line, length);
  return { shown: line.slice(0, end), hidden: line.length - end };
}

/** A line with at most so many characters; the end says how many are missing. */
export function shortLine(line: string, length = MAX_LINE): string {
  const { shown, hidden } = cutLine(line, length);
  return hidden === 0 ? shown : `${shown}… (${hidden.toLocaleString(LANGUAGE)} more characters)`;
}

function endWithin(text: string, end: number): number {
  if (end >= text.length) return text.length;
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last < 0xdc00 ? end - 1 : end;
}
