import { describe, expect, test } from "vitest";
import { codeOf, splitBlocks } from "./blocks.logic";
import { HOSTILE, numbered } from "./hostile";
import { blocksWithin, isTooComplex, PAGE_LENGTH } from "./limits.logic";

const repeated = (unit: string, length: number) => unit.repeat(Math.ceil(length / unit.length)).slice(0, length);
describe("too complex to parse", () => {
  test.each(Object.keys(HOSTILE))("%s", (name) => {
    const blocks = splitBlocks(HOSTILE[name] ?? "");
    expect(blocks.some(isTooComplex) || blocks.length > 1).toBe(true);
    for (const block of blocks) if (!isTooComplex(block)) expect(block.length).toBeLessThanOrEqual(16_000);
  });
});

test("ordinary text is parsed", () => {
  const prose = repeated("Some **bold** words, `code`, a [link](https://example.com/a_b) and *more*.\n\n", 12_000);
  const list = numbered(200, (item) => `- **Item ${item}**: does \`x_${item}\` ([docs](https://example.com))\n`);
  const table = `| a | b | c |\n|---|---|---|\n${"| 1 | `2` | **3** |\n".repeat(100)}`;
  const code = `\`\`\`py\n${"    if a[0] < b and c_d: return [x for x in y]\n".repeat(300)}\`\`\``;
  const nested = "> quote\n> > deeper\n>\n> - a\n>   - b\n>     - c\n";
  for (const text of [prose, list, table, code, nested])
    for (const block of splitBlocks(text))
      expect(codeOf(block) === null && isTooComplex(block), block.slice(0, 60)).toBe(false);
});

test("a message draws one page of blocks, and at least one", () => {
  expect(blocksWithin(["a".repeat(9_000), "b".repeat(9_000)], PAGE_LENGTH)).toBe(1);
  expect(blocksWithin(["a".repeat(10 * PAGE_LENGTH)], PAGE_LENGTH)).toBe(1);
  expect(blocksWithin(["a", "b", "c"], PAGE_LENGTH)).toBe(3);
  expect(blocksWithin([], PAGE_LENGTH)).toBe(0);
});

test("a long list is split between its items, and keeps its numbers", () => {
  const blocks = splitBlocks(numbered(2_000, (item) => `${item + 1}. item\n`));
  expect(blocks.length).toBeGreaterThan(3);
  expect(blocks[1]).toMatch(/^\d+\. item/);
});

test("a text of open brackets is split in one pass", () => {
  expect(splitBlocks("[\n".repeat(500_000))).toHaveLength(1);
});
