import { expect, test } from "vitest";
import { imageType, languageOf, MAX_EDITED, reactionToChange, readContent } from "./content.logic";

const bytes = (text: string) => new TextEncoder().encode(text);

test("text is opened, and other content is not", () => {
  expect(readContent("a.txt", bytes("hé\n"))).toEqual({ kind: "text", text: "hé\n" });
  expect(readContent("a.bin", new Uint8Array([1, 0, 2]))).toEqual({ kind: "binary" });
  expect(readContent("a.txt", new Uint8Array([0xff, 0xfe, 0x41]))).toEqual({ kind: "binary" });
  expect(readContent("a.txt", new Uint8Array(MAX_EDITED + 1).fill(65))).toEqual({ kind: "large" });
});

test("a file that a browser could run is never an image", () => {
  expect(imageType("a.PNG")).toBe("image/png");
  expect(imageType("a.svg")).toBeNull();
  expect(imageType("a.html")).toBeNull();
  expect(readContent("a.svg", bytes("<svg onload=alert(1)>"))).toMatchObject({ kind: "text" });
});

test("a PDF is recognized by its name and its first bytes", () => {
  expect(readContent("a.pdf", bytes("%PDF-1.7\n"))).toEqual({ kind: "pdf" });
  expect(readContent("a.txt", bytes("%PDF-1.7\n"))).toMatchObject({ kind: "text" });
  expect(readContent("a.pdf", bytes("<script>"))).toMatchObject({ kind: "text" });
});

test("a byte order mark is kept", () => {
  expect(readContent("a.txt", new Uint8Array([0xef, 0xbb, 0xbf, 0x41]))).toEqual({ kind: "text", text: "\ufeffA" });
});

test("the language comes from the extension", () => {
  expect(languageOf("src/App.tsx", "")).toBe("typescript");
  expect(languageOf(".gitignore", "")).toBeNull();
});

test("a changed file is reloaded, or reported when it was edited", () => {
  expect(reactionToChange("1", "1", true)).toBe("nothing");
  expect(reactionToChange("1", "2", false)).toBe("reload");
  expect(reactionToChange("1", "2", true)).toBe("conflict");
});

test("a text with a line that is too long for the editor is only shown", () => {
  const kind = (text: string) => readContent("a.txt", new TextEncoder().encode(text)).kind;
  expect(kind("x\n".repeat(100_000))).toBe("text");
  expect(kind(`${"x".repeat(5_000)}\n`)).toBe("text");
  expect(kind(`short\n${"x".repeat(5_001)}`)).toBe("long-lines");
  expect(kind("x".repeat(1_000_000))).toBe("long-lines");
});

test("a text that takes its parser too long is not highlighted", () => {
  expect(languageOf("a.md", "# Title\n\n- one\n")).toBe("markdown");
  expect(languageOf("a.md", "*a_ ".repeat(1_000))).toBeNull();
  expect(languageOf("a.md", "> ".repeat(1_000))).toBeNull();
  expect(languageOf("a.json", "[\n".repeat(400_000))).toBeNull();
});
