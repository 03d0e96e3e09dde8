// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CommandPalette } from "./CommandPalette";
import { type Command, ROWS } from "./commandSearch.logic";

const FILES = 10_000;
const opened = vi.fn();
const files: readonly Command[] = Array.from({ length: FILES }, (_, at) => ({
  id: `file-${at}`,
  title: `folder/name${at}.txt`,
  group: "File",
  run: () => opened(at),
}));
vi.mock("./usePaletteItems", () => ({ usePaletteItems: () => files }));
vi.mock("./useFoundText", () => ({ useFoundText: () => ({ items: [], isBusy: false }) }));

const commands: readonly Command[] = Array.from({ length: 200 }, (_, at) => ({
  id: `command-${at}`,
  title: `Do ${at}`,
  group: "Page",
  run: () => undefined,
}));
const onClose = vi.fn();
let place: HTMLDivElement;

beforeEach(async () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  place = document.body.appendChild(document.createElement("div"));
  await act(async () => createRoot(place).render(<CommandPalette commands={commands} onClose={onClose} />));
});
afterEach(() => {
  place.remove();
  vi.clearAllMocks();
});

const rows = () => [...place.querySelectorAll<HTMLElement>("[role=option]")];
const field = () => place.querySelector("input") as HTMLInputElement;

async function type(text: string) {
  await act(async () => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")?.set?.call(field(), text);
    field().dispatchEvent(new Event("input", { bubbles: true }));
  });
}
const press = (key: string) =>
  act(async () => field().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })));

test("of 10,000 files the best are drawn, the rest is counted, and more are drawn on request", async () => {
  await type("n");
  expect(rows()).toHaveLength(ROWS + 1);
  expect(rows().at(-1)?.textContent).toContain("Show more: 9,900 are left");
  await press("ArrowUp");
  await press("Enter");
  expect(onClose).not.toHaveBeenCalled();
  expect(rows()).toHaveLength(2 * ROWS + 1);
  expect(rows()[ROWS]?.getAttribute("aria-selected")).toBe("true");
  await press("Enter");
  expect(opened).toHaveBeenCalledWith(ROWS);
  expect(onClose).toHaveBeenCalled();
});

test("the file whose name was typed comes first", async () => {
  await type("name9999");
  expect(rows()[0]?.textContent).toContain("folder/name9999.txt");
  expect(rows()).toHaveLength(1);
});

test("all commands are there while nothing is typed", () => {
  expect(rows()).toHaveLength(200);
});
