import { expect, test } from "vitest";
import type { PageDeclaration } from "../ui/page";
import { barLength, pagesToOffer } from "./navigation.logic";
import { PAGES } from "./pages";

const paths = (pages: readonly PageDeclaration[]) => pages.map((page) => page.path);

test("a slot that is off has no page in the navigation, unless that page is open", () => {
  const off = paths(pagesToOffer(PAGES, [], undefined));
  expect(off).toContain("/sessions");
  expect(off).not.toContain("/memory");
  const memory = PAGES.find((page) => page.path === "/memory");
  expect(paths(pagesToOffer(PAGES, [], memory))).toEqual(
    paths(PAGES).filter((path) => off.includes(path) || path === "/memory"),
  );
  expect(paths(pagesToOffer(PAGES, ["beads", "pods", "memory", "events", "orchestrator"], undefined))).toEqual(
    paths(PAGES),
  );
});

test("no two pages have the same place or the same key", () => {
  expect(new Set(PAGES.map((page) => page.order)).size).toBe(PAGES.length);
  expect(new Set(PAGES.map((page) => page.key)).size).toBe(PAGES.length);
});

test("the bar of a phone shows all pages, or few and a button for the others", () => {
  expect(barLength(8)).toBe(8);
  expect(barLength(9)).toBe(4);
});
