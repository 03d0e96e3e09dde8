import { expect, test } from "vitest";
import { dictationProblem, finalWords, findRecognition, withWords } from "./dictation.logic";

test("only words that are certain are taken, and each once", () => {
  const results = [
    { isFinal: true, 0: { transcript: "before" } },
    { isFinal: true, 0: { transcript: " make it" } },
    { isFinal: false, 0: { transcript: " dar" } },
  ];
  expect(finalWords({ resultIndex: 1, results })).toBe("make it");
});

test("words are put after the text with a space", () => {
  expect(withWords("", "make it")).toBe("make it ");
  expect(withWords("Please", "make it")).toBe("Please make it ");
  expect(withWords("Please ", "make it")).toBe("Please make it ");
  expect(withWords("Please", "")).toBe("Please");
});

test("silence is no problem, and a refused microphone is said", () => {
  expect(dictationProblem("no-speech")).toBeNull();
  expect(dictationProblem("not-allowed")).toContain("microphone");
});

test("a browser without recognition has none", () => {
  expect(findRecognition({})).toBeNull();
});
