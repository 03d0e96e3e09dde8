import { expect, test } from "vitest";
import { afterChange, imageType, languageOf, MOST_EDITED, readContent } from "./content.logic";

const bytes = (text: string) => new TextEncoder().encode(text);

test("text is text, and what is not is not opened", () => {
  expect(readContent("a.txt", bytes("hé\n"))).toEqual({ kind: "text", text: "hé\n" });
  expect(readContent("a.bin", new Uint8Array([1, 0, 2]))).toEqual({ kind: "binary" });
  expect(readContent("a.txt", new Uint8Array([0xff, 0xfe, 0x41]))).toEqual({ kind: "binary" });
  expect(readContent("a.txt", new Uint8Array(MOST_EDITED + 1).fill(65))).toEqual({ kind: "large" });
});

test("what a browser could run is never an image", () => {
  expect(imageType("a.PNG")).toBe("image/png");
  expect(imageType("a.svg")).toBeNull();
  expect(imageType("a.html")).toBeNull();
  expect(readContent("a.svg", bytes("<svg onload=alert(1)>"))).toMatchObject({ kind: "text" });
});

test("a PDF is one by its name and its beginning", () => {
  expect(readContent("a.pdf", bytes("%PDF-1.7\n"))).toEqual({ kind: "pdf" });
  expect(readContent("a.txt", bytes("%PDF-1.7\n"))).toMatchObject({ kind: "text" });
  expect(readContent("a.pdf", bytes("<script>"))).toMatchObject({ kind: "text" });
});

test("a byte order mark is kept, so that saving changes nothing else", () => {
  expect(readContent("a.txt", new Uint8Array([0xef, 0xbb, 0xbf, 0x41]))).toEqual({ kind: "text", text: "\ufeffA" });
});

test("languages go by the name's end", () => {
  expect(languageOf("src/App.tsx")).toBe("typescript");
  expect(languageOf(".gitignore")).toBeNull();
});

test("a change under the editor reloads what is clean and warns of what is not", () => {
  expect(afterChange("1", "1", true)).toBe("nothing");
  expect(afterChange("1", "2", false)).toBe("reload");
  expect(afterChange("1", "2", true)).toBe("conflict");
});
