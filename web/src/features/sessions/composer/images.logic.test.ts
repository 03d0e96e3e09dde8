import { expect, test } from "vitest";
import { fitted, kindOf, MOST_BYTES, MOST_IMAGES, refusal } from "./images.logic";

const bytes = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

test("an image is known by its bytes and not by its name", () => {
  expect(kindOf(bytes("\x89PNG\r\n"))).toBe("image/png");
  expect(kindOf(bytes("\xff\xd8\xff\xe0"))).toBe("image/jpeg");
  expect(kindOf(bytes("GIF89a"))).toBe("image/gif");
  expect(kindOf(bytes("RIFF\0\0\0\0WEBPVP8 "))).toBe("image/webp");
  expect(kindOf(bytes("<svg onload=alert(1)>"))).toBeNull();
  expect(kindOf(bytes(""))).toBeNull();
});

test("a large picture keeps its shape", () => {
  expect(fitted(4000, 2000, 2000)).toEqual({ width: 2000, height: 1000 });
  expect(fitted(10, 20, 2000)).toEqual({ width: 10, height: 20 });
});

test("too many and too much are refused before they are sent", () => {
  const held = (count: number, size: number) => Array.from({ length: count }, () => ({ size }));
  expect(refusal(held(MOST_IMAGES, 1), 1)).toContain("8 images");
  expect(refusal(held(2, MOST_BYTES / 2), 1)).toContain("MB");
  expect(refusal(held(1, 10), 10)).toBeNull();
});
