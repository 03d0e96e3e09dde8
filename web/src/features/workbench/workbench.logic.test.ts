import { expect, test } from "vitest";
import { fitShare, readLayout, sessionAt, shareAfterKey, tabAfterKey, tabAt } from "./workbench.logic";

test("an address has the tab of its page", () => {
  expect(tabAt("/history/diff?old=1&new=2")).toBe("changes");
  expect(tabAt("/files?path=a")).toBe("files");
  expect(tabAt("/terminal")).toBe("terminal");
  expect(tabAt("/history")).toBeNull();
  expect(tabAt("/sessions?id=1")).toBe("session");
  expect(sessionAt("/sessions?id=a%20b")).toBe("a b");
  expect(sessionAt("/sessions")).toBeNull();
  expect(sessionAt("/files?id=1")).toBeNull();
});

test("the layout is remembered, and what is not understood is left out", () => {
  expect(readLayout(null, 1_920)).toEqual({ isOpen: true, tab: "changes", share: 0.45, beside: null });
  expect(readLayout(null, 1_280).isOpen).toBe(false);
  const stored = JSON.stringify({ isOpen: true, tab: "files", share: 0.3, beside: "b" });
  expect(readLayout(stored, 1_280)).toEqual({ isOpen: true, tab: "files", share: 0.3, beside: "b" });
  for (const odd of ["{", "null", "[]", '{"isOpen":1,"tab":"nothing","share":7}', '"x"'])
    expect(readLayout(odd, 1_280)).toEqual({ isOpen: false, tab: "changes", share: 0.45, beside: null });
});

test("pane and conversation keep their least width", () => {
  expect(fitShare(0.1, 1_000)).toBe(0.32);
  expect(fitShare(0.9, 1_000)).toBe(0.6);
  expect(fitShare(0.45, 1_000)).toBe(0.45);
  expect(fitShare(0.9, 500)).toBe(0.5);
});

test("keys move the edge", () => {
  expect(shareAfterKey("ArrowLeft", 0.4, 1_000)).toBeCloseTo(0.432);
  expect(shareAfterKey("ArrowRight", 0.4, 1_000)).toBeCloseTo(0.368);
  expect(shareAfterKey("Home", 0.4, 1_000)).toBe(0.32);
  expect(shareAfterKey("End", 0.4, 1_000)).toBe(0.6);
  expect(shareAfterKey("a", 0.4, 1_000)).toBeNull();
});

test("keys choose tabs in a circle", () => {
  expect(tabAfterKey("ArrowDown", "changes")).toBe("preview");
  expect(tabAfterKey("ArrowUp", "changes")).toBe("session");
  expect(tabAfterKey("ArrowRight", "session")).toBe("changes");
  expect(tabAfterKey("End", "changes")).toBe("session");
  expect(tabAfterKey("Enter", "changes")).toBeNull();
});
