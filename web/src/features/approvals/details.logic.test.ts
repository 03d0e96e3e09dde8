import { expect, test } from "vitest";
import type { RequestDetail } from "./approvals.logic";
import { countLines, drawnDetails, PAGE_LENGTH } from "./details.logic";

const detail = (text: string, more: Partial<RequestDetail> = {}): RequestDetail => ({
  kind: "text",
  label: "Input",
  text,
  runsByItself: null,
  warnings: [],
  ...more,
});
const NONE = new Set<number>();

test("a short request is drawn whole", () => {
  const details = [detail("one\ntwo"), detail("new\n", { kind: "diff", old: "old\n" })];
  const { drawn, hidden } = drawnDetails(details, PAGE_LENGTH, NONE);
  expect(drawn.map((one) => one.text)).toEqual(["one\ntwo", "old\nnew"]);
  expect(hidden).toBe(0);
  expect(countLines(details)).toBe(4);
});

test.each([
  ["a long line", [detail("x".repeat(500_000))]],
  ["many lines", [detail("x\n".repeat(250_000))]],
  ["many parts", Array.from({ length: 5_000 }, () => detail("x".repeat(100)))],
  ["a long change", [detail("x\n".repeat(100_000), { kind: "diff", old: "y\n".repeat(100_000) })]],
])("of %s only a page is drawn, the rest is counted, and every page adds to it", (_, details) => {
  const first = drawnDetails(details, PAGE_LENGTH, NONE);
  const length = first.drawn.reduce((sum, one) => sum + one.text.length, 0);
  expect(length).toBeLessThanOrEqual(PAGE_LENGTH);
  expect(first.drawn.reduce((sum, one) => sum + one.lines.length, 0)).toBeLessThanOrEqual(1_000);
  expect(first.hidden).toBeGreaterThan(200_000);
  expect(drawnDetails(details, 2 * PAGE_LENGTH, NONE).hidden).toBeLessThan(first.hidden);
  expect(drawnDetails(details, 1e9, NONE).hidden).toBe(0);
});

test("a small change in the middle of a long file is drawn, and all lines around it when they are asked for", () => {
  const lines = Array.from({ length: 20_000 }, (_, line) => `line ${line}`);
  const changed = lines.with(10_000, "evil");
  const details = [detail(changed.join("\n"), { kind: "diff", old: lines.join("\n") })];
  const { drawn, hidden } = drawnDetails(details, PAGE_LENGTH, NONE);
  expect(drawn[0]?.text).toContain("evil");
  expect(drawn[0]?.text).toContain("9997 unchanged lines");
  expect(hidden).toBe(0);
  expect(drawnDetails(details, PAGE_LENGTH, new Set([0])).hidden).toBeGreaterThan(100_000);
});
