/**
 * Lets only sequences through that the emulator draws in bounded time. It is the same filter as
 * `src/freehold/gateway/terminal_filter.py`; here it also knows the size of the screen and what each sequence costs.
 */

const MAX_NUMBER = 9_999;
/** No screen has more lines or columns. */
const MAX_COUNT = 1_000;
const MAX_PARAMETERS = 32;
const MAX_STRING = 4_096;
const MAX_MARKS = 16;

/** Sequences whose parameters count lines, columns or repetitions, or name a place on the screen. */
const COUNTED = new Set("@ABCDEFGHILMPSTXZ^`abdef}~");
/** Sequences that move whole lines, as often as they say. */
const MOVES_LINES = new Set("LMST^");
/** Introducers of strings, and as what they are written again. Terminals ignore the empty ones. */
const STRINGS: Readonly<Record<string, string>> = {
  P: "P",
  "]": "]",
  X: "",
  "^": "",
  _: "",
  "\x90": "P",
  "\x9d": "]",
  "\x98": "",
  "\x9e": "",
  "\x9f": "",
};
// biome-ignore-start lint/suspicious/noControlCharactersInRegex: this is about control characters
const START = /[\x1b\x80-\x9f]/g;
const CONTROL_SEQUENCE = /[\x30-\x3f]{0,256}[\x20-\x2f]{0,4}/y;
const ESCAPE_SEQUENCE = /[\x20-\x2f]{0,4}/y;
const STRING_END = /[\x07\x18\x1a\x1b\x80-\x9f]/g;
const CONTROL = /[\x00-\x1f\x7f]/;
const ASCII = /^[\x00-\x7f]*$/;
const LAST_PRINTABLE = /[\x20-\x7e]$/;
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: see above
const LONG_NUMBER = /[0-9]{4,}/g;
/** Marks, the Hangul letters that join, and one sign that was a mark in Unicode 6. */
const MARK = /[\p{M}\p{Cf}\u1160-\u11ff\u06de]/u;

export interface Screen {
  rows: number;
  columns: number;
}

/** A part of the output that is drawn without a pause. */
export interface Piece {
  text: string;
  /** The bytes of output that it stands for are not more than this. */
  cost: number;
}

/** The cost of a piece. A letter costs 1. */
export const MAX_COST = 30_000;
const SEQUENCE_COST = 4;
/** A line or a whole screen that is cleared costs a part of its letters. */
const CLEARED = 0.08;
const RESET_COST = 20_000;

const LARGEST: Screen = { rows: MAX_COUNT, columns: MAX_COUNT };

/** Filters one stream of output. Whole sequences come out; the start of one waits for its end. */
export class TerminalFilter {
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  private rest = "";
  private begun = false;
  private discarding = false;
  private marks = MAX_MARKS;
  private pieces: Piece[] = [];

  constructor(private readonly screen: () => Screen = () => LARGEST) {}

  /** What may be drawn of the next output, in pieces. */
  feed(data: Uint8Array): Piece[] {
    let bytes = data;
    if (!this.begun) {
      // A replay may begin within a character.
      bytes = data.subarray(leadingContinuation(data));
      this.begun = bytes.length > 0;
    }
    const text = this.rest + this.decoder.decode(bytes, { stream: true });
    this.rest = "";
    this.pieces = [];
    let at = this.discarding ? this.discard(text, 0) : 0;
    while (at < text.length) {
      const end = indexOf(START, text, at);
      if (end > at) this.writeText(text.slice(at, end));
      at = end < text.length ? this.sequence(text, end) : end;
    }
    return this.pieces;
  }

  private sequence(text: string, at: number): number {
    this.marks = MAX_MARKS;
    let kind = text[at] ?? "";
    let body = at + 1;
    if (kind === "\x1b") {
      if (body === text.length) return this.wait(text, at);
      kind = text[body++] ?? "";
    } else if (kind === "\x9b") kind = "[";
    else if (!Object.hasOwn(STRINGS, kind)) return body;
    if (kind === "[") return this.controlSequence(text, at, body);
    const written = Object.hasOwn(STRINGS, kind) ? STRINGS[kind] : undefined;
    return written === undefined ? this.escapeSequence(text, at) : this.string(text, at, body, written);
  }

  private controlSequence(text: string, start: number, body: number): number {
    const end = endOf(CONTROL_SEQUENCE, text, body);
    if (end === text.length) return this.wait(text, start);
    const final = text[end] ?? "";
    if (final < "\x40" || final > "\x7e") return end;
    this.writeControl(text.slice(body, end), final);
    return end + 1;
  }

  private escapeSequence(text: string, start: number): number {
    const end = endOf(ESCAPE_SEQUENCE, text, start + 1);
    if (end === text.length) return this.wait(text, start);
    const final = text[end] ?? "";
    if (final < "\x30" || final > "\x7e") return end;
    const sequence = text.slice(start, end + 1);
    const { rows, columns } = this.screen();
    const cost = final === "c" ? RESET_COST : sequence.length > 2 ? rows * columns * CLEARED : SEQUENCE_COST;
    this.write(sequence, cost);
    return end + 1;
  }

  private string(text: string, start: number, body: number, kind: string): number {
    const end = indexOf(STRING_END, text, body);
    if (end === text.length || (text[end] === "\x1b" && end + 1 === text.length)) {
      if (end - body <= MAX_STRING) return this.wait(text, start);
      this.discarding = true;
      return this.discard(text, end);
    }
    const { after, isWhole } = endOfString(text, end);
    if (isWhole && kind !== "" && end - body <= MAX_STRING) {
      this.write(`\x1b${kind}${this.withoutMarks(text.slice(body, end))}\x1b\\`, end - body);
      this.marks = MAX_MARKS;
    }
    return after;
  }

  /** Skips to the end of a string that is too long. */
  private discard(text: string, at: number): number {
    const end = indexOf(STRING_END, text, at);
    if (end === text.length) return end;
    if (text[end] === "\x1b" && end + 1 === text.length) return this.wait(text, end);
    this.discarding = false;
    return endOfString(text, end).after;
  }

  private wait(text: string, start: number): number {
    this.rest = text.slice(start);
    return text.length;
  }

  private writeControl(parameters: string, final: string): void {
    if (final === "t" || parameters.split(/[;:]/).length > MAX_PARAMETERS) return;
    const { rows, columns } = this.screen();
    const isCount = COUNTED.has(final);
    const largest = MOVES_LINES.has(final) ? rows : Math.max(rows, columns);
    const most = isCount ? Math.min(MAX_COUNT, largest) : MAX_NUMBER;
    const limited = parameters.replace(isCount && most < MAX_COUNT ? /[0-9]+/g : LONG_NUMBER, (digits) =>
      digits.length <= 4 && Number(digits) <= most ? digits : String(most),
    );
    const count = isCount ? Number(/[0-9]+/.exec(limited)?.[0] ?? 1) : 0;
    const cleared = final === "J" || final === "h" || final === "l" ? rows : MOVES_LINES.has(final) ? count : 1;
    this.write(`\x1b[${limited}${final}`, SEQUENCE_COST + count + cleared * columns * CLEARED);
  }

  private writeText(text: string): void {
    const kept = this.withoutMarks(text);
    for (let at = 0; at < kept.length; ) {
      // A character of two halves is not cut.
      let end = Math.min(kept.length, at + MAX_COST);
      if (end < kept.length && isHighSurrogate(kept.charCodeAt(end - 1))) end--;
      this.write(kept.slice(at, end), end - at);
      at = end;
    }
  }

  private write(text: string, cost: number): void {
    const last = this.pieces.at(-1);
    if (last === undefined || last.cost + cost > MAX_COST) this.pieces.push({ text, cost });
    else {
      last.text += text;
      last.cost += cost;
    }
  }

  /** The text with a limited number of marks directly after each character. */
  private withoutMarks(text: string): string {
    if (ASCII.test(text)) {
      this.marks = LAST_PRINTABLE.test(text) ? 0 : MAX_MARKS;
      return text;
    }
    let kept = "";
    for (const char of text) {
      if (CONTROL.test(char)) this.marks = MAX_MARKS;
      else if (char < "\x80" || !MARK.test(char)) this.marks = 0;
      else if (this.marks >= MAX_MARKS) continue;
      else this.marks++;
      kept += char;
    }
    return kept;
  }
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code < 0xdc00;

function leadingContinuation(data: Uint8Array): number {
  let count = 0;
  while (count < data.length && ((data[count] ?? 0) & 0xc0) === 0x80) count++;
  return count;
}

function indexOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index ?? text.length;
}

/** Where a sticky pattern that may match nothing ends. */
function endOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return from + (pattern.exec(text)?.[0].length ?? 0);
}

/** The position after the end of a string, and whether it ended as it should. */
function endOfString(text: string, end: number): { after: number; isWhole: boolean } {
  const char = text[end];
  if (char === "\x07" || char === "\x9c") return { after: end + 1, isWhole: true };
  if (char === "\x1b")
    return text[end + 1] === "\\" ? { after: end + 2, isWhole: true } : { after: end, isWhole: false };
  return { after: char === "\x18" || char === "\x1a" ? end + 1 : end, isWhole: false };
}
