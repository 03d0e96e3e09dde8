import { readFileSync } from "node:fs";
import { Terminal } from "@xterm/xterm";
import { expect, test } from "vitest";
import { MAX_COST, type Screen, TerminalFilter } from "./terminalFilter.logic";

const CASES: [claim: string, output: string, drawn: string][] = JSON.parse(
  readFileSync(new URL("../../../../tests/gateway/terminal_filter_cases.json", import.meta.url), "utf8"),
);
const encode = (text: string) => new TextEncoder().encode(text);
const SMALL: Screen = { rows: 24, columns: 80 };

function filtered(output: string, size = Number.POSITIVE_INFINITY, screen?: Screen): string {
  const filter = screen === undefined ? new TerminalFilter() : new TerminalFilter(() => screen);
  const bytes = encode(output);
  let drawn = "";
  for (let at = 0; at < bytes.length; at += size)
    for (const piece of filter.feed(bytes.subarray(at, at + size))) drawn += piece.text;
  return drawn;
}

test.each(CASES)("%s", (_, output, drawn) => {
  expect(filtered(output)).toBe(drawn);
  expect(filtered(output, 1)).toBe(drawn);
});

test("counts are limited to the screen", () => {
  expect(filtered("\x1b[999L\x1b[24S\x1b[2147483647b", Number.POSITIVE_INFINITY, SMALL)).toBe(
    "\x1b[24L\x1b[24S\x1b[80b",
  );
});

test("what costs much is drawn in many pieces", () => {
  const pieces = (output: string) => new TerminalFilter(() => SMALL).feed(encode(output));
  expect(pieces("x".repeat(1_000))).toHaveLength(1);
  for (const bomb of [
    "\x1b[24L",
    "\x1b[24S",
    "\x1b[80b",
    "\x1b#8",
    "\x1bc",
    "\x1b[2J",
    "\x1b[?1049h",
    "\x1b[9999;9999H",
  ]) {
    const found = pieces(bomb.repeat(2_000));
    expect(found.length, JSON.stringify(bomb)).toBeGreaterThan(5);
    for (const piece of found) expect(piece.cost).toBeLessThanOrEqual(MAX_COST);
  }
  expect(pieces("x".repeat(3_000_000)).length).toBe(100);
});

test("three million marks are sixteen", () => {
  expect(filtered(`a${"\u0301".repeat(3_000_000)}`)).toBe(`a${"\u0301".repeat(16)}`);
});

test("a giant string is left out", () => {
  const filter = new TerminalFilter();
  expect(filter.feed(encode("\x1b]0;"))).toEqual([]);
  for (let round = 0; round < 100; round++) expect(filter.feed(encode("x".repeat(32_768)))).toEqual([]);
  expect(filter.feed(encode("\x07after")).map((piece) => piece.text)).toEqual(["after"]);
});

test("every character that the emulator adds to the one before it is a mark", () => {
  const terminal = new Terminal({ allowProposedApi: true });
  const core = (terminal as unknown as { _core: { unicodeService: { wcwidth: (code: number) => number } } })._core;
  const missed: string[] = [];
  for (let code = 0xa0; code < 0x110000; code++) {
    if (code >= 0xd800 && code < 0xe000) continue;
    if (core.unicodeService.wcwidth(code) > 0) continue;
    const marks = String.fromCodePoint(code).repeat(20);
    if (filtered(`a${marks}`).length > 1 + marks.length * 0.8) missed.push(code.toString(16));
    if (missed.length > 5) break;
  }
  expect(missed).toEqual([]);
});
