// For tests only.
export const numbered = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => line(index)).join("");

/** Texts that take the parser long, or more calls than the stack holds. */
export const HOSTILE: Record<string, string> = {
  "nested quotes": "> ".repeat(2_000),
  "nested lists": "- ".repeat(2_000),
  "nested ordered lists": "1. ".repeat(2_000),
  "quotes and lists": "> - ".repeat(1_000),
  "quotes in lines": numbered(200, (line) => `${"> ".repeat(line)}a\n`),
  "lists by indentation": numbered(120, (line) => `${" ".repeat(2 * line)}- a\n`),
  "a long line": "a".repeat(100_000),
  "a longer line": "word ".repeat(400_000),
  "nested emphasis": `${"*".repeat(2_000)}a${"*".repeat(2_000)}`,
  "mixed emphasis": "*a_ ".repeat(1_000),
  underscores: "_.".repeat(2_000),
  "growing backtick runs": numbered(150, (run) => `${"`".repeat(run + 1)}a`),
  "open brackets": "[".repeat(4_000),
  "closing brackets": "]".repeat(4_000),
  "open links": "[a](".repeat(1_000),
  "many images": "![a](b)".repeat(1_000),
  "open tags": "<a ".repeat(1_000),
  comments: "<!-- ".repeat(1_000),
  "underlined headings": "a\n=\n".repeat(1_000),
  "a wide table with short rows": `${"|a".repeat(500)}\n${"|-".repeat(500)}\n${"a\n".repeat(500)}`,
  "a long table": `|a|b|c|d|\n|-|-|-|-|\n${"|1|2|3|4|\n".repeat(1_000)}`,
  "lines in deep quotes": `${"> ".repeat(20)}${"a\n".repeat(2_000)}`,
  "many list items": "- a\n".repeat(3_900),
  footnotes: numbered(2_000, (note) => `[^${note}]`),
};
