import { expect, test } from "vitest";
import { placeBeside } from "./place.logic";

const anchor = { left: 100, top: 100, right: 140, bottom: 130 };
const how = { side: "below", align: "end", gap: 4 } as const;

test("it hangs below, its end at the anchor's end", () => {
  expect(placeBeside(anchor, { width: 80, height: 200 }, { width: 400, height: 800 }, how)).toEqual({ left: 60, top: 134, most: 658 });
});

test("it goes to the other side when there is more room", () => {
  expect(placeBeside({ ...anchor, top: 700, bottom: 730 }, { width: 80, height: 200 }, { width: 400, height: 800 }, how).top).toBe(496);
});

test("it never leaves the window", () => {
  expect(placeBeside({ ...anchor, left: 0, right: 20 }, { width: 80, height: 200 }, { width: 400, height: 800 }, how).left).toBe(8);
  expect(placeBeside(anchor, { width: 80, height: 2000 }, { width: 400, height: 300 }, how).most).toBeLessThan(300);
});
