import { expect, test } from "vitest";
import { imageProblem, imageTypeOf, MAX_IMAGES, MAX_TOTAL_BYTES, scaledSize } from "./images.logic";

const bytes = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

test("the type of an image comes from its bytes and not from its name", () => {
  expect(imageTypeOf(bytes("\x89PNG\r\n"))).toBe("image/png");
  expect(imageTypeOf(bytes("\xff\xd8\xff\xe0"))).toBe("image/jpeg");
  expect(imageTypeOf(bytes("GIF89a"))).toBe("image/gif");
  expect(imageTypeOf(bytes("RIFF\0\0\0\0WEBPVP8 "))).toBe("image/webp");
  expect(imageTypeOf(bytes("<svg onload=alert(1)>"))).toBeNull();
  expect(imageTypeOf(bytes(""))).toBeNull();
});

test("a large image keeps its proportions", () => {
  expect(scaledSize(4000, 2000, 2000)).toEqual({ width: 2000, height: 1000 });
  expect(scaledSize(10, 20, 2000)).toEqual({ width: 10, height: 20 });
});

test("too many or too large images are refused before they are sent", () => {
  const held = (count: number, size: number) => Array.from({ length: count }, () => ({ size }));
  expect(imageProblem(held(MAX_IMAGES, 1), 1)).toContain("8 images");
  expect(imageProblem(held(2, MAX_TOTAL_BYTES / 2), 1)).toContain("MB");
  expect(imageProblem(held(1, 10), 10)).toBeNull();
});
