import { expect, test } from "vitest";
import { popupPosition } from "./popupPosition.logic";

const anchor = { left: 100, top: 100, right: 140, bottom: 130 };
const placement = { side: "below", align: "end", gap: 4 } as const;

test("a popup opens below, with its end at the end of the anchor", () => {
  expect(popupPosition(anchor, { width: 80, height: 200 }, { width: 400, height: 800 }, placement)).toEqual({
    left: 60,
    top: 134,
    maxHeight: 658,
  });
});

test("it opens on the other side when there is more space", () => {
  expect(
    popupPosition(
      { ...anchor, top: 700, bottom: 730 },
      { width: 80, height: 200 },
      { width: 400, height: 800 },
      placement,
    ).top,
  ).toBe(496);
});

test("it never leaves the window", () => {
  expect(
    popupPosition({ ...anchor, left: 0, right: 20 }, { width: 80, height: 200 }, { width: 400, height: 800 }, placement)
      .left,
  ).toBe(8);
  expect(
    popupPosition(anchor, { width: 80, height: 2000 }, { width: 400, height: 300 }, placement).maxHeight,
  ).toBeLessThan(300);
});
