import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { PageDeclaration } from "../ui/page";
import { groupsToOffer, pagesToOffer, readOpenGroups, toggleGroup } from "./navigation.logic";
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
  const everything = PAGES.flatMap((page) => [page.slot ?? [], page.feature ?? []].flat());
  expect(everything).toContain("beads");
  expect(paths(pagesToOffer(PAGES, everything, undefined))).toEqual(paths(PAGES));
});

test("the gateway serves every page at its address", () => {
  const routes = new URL("../../../src/freehold/gateway/routes/pages.py", import.meta.url);
  const served = [...readFileSync(routes, "utf8").matchAll(/^ {4}"(\/[^"]*)",$/gm)].map((found) => found[1]);
  expect(paths(PAGES).filter((path) => !served.includes(path))).toEqual([]);
});

test("no two pages have the same place or the same key", () => {
  expect(new Set(PAGES.map((page) => page.order)).size).toBe(PAGES.length);
  expect(new Set(PAGES.map((page) => page.key)).size).toBe(PAGES.length);
});

test("five pages come first, and a phone has them in its bar", () => {
  const first = PAGES.filter((page) => page.group === "start");
  expect(paths(first)).toEqual(["/sessions", "/history", "/files", "/terminal", "/preview"]);
  expect(PAGES.slice(0, first.length)).toEqual(first);
});

test("every other page is in a group or at the end, in the order of the navigation", () => {
  const grouped = groupsToOffer(PAGES).flatMap((one) => one.pages);
  const end = PAGES.filter((page) => page.group === "end");
  expect([...PAGES.slice(0, 5), ...grouped, ...end]).toEqual(PAGES);
});

test("a group without a page to offer is not shown", () => {
  const pages = PAGES.filter((page) => page.group !== "Agents");
  expect(groupsToOffer(pages).map((one) => one.group)).toEqual(["Workspace", "Automation", "System"]);
});

test("groups are folded until they are opened, and what is kept is read with care", () => {
  expect(readOpenGroups(null)).toEqual([]);
  expect(readOpenGroups("System,Nonsense,Agents")).toEqual(["Agents", "System"]);
  expect(toggleGroup(["System"], "Agents")).toEqual(["Agents", "System"]);
  expect(toggleGroup(["Agents", "System"], "Agents")).toEqual(["System"]);
});
