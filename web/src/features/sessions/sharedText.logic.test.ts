import { expect, test } from "vitest";
import { sharedText } from "./sharedText.logic";

const shared = (given: Record<string, string>) => sharedText(new URLSearchParams(given));

test("what was shared becomes a message, each part once", () => {
  expect(shared({ share_title: "A page", share_url: "https://example.org/" })).toBe("A page\nhttps://example.org/");
  expect(shared({ share_text: "Look: https://example.org/", share_url: "https://example.org/" })).toBe(
    "Look: https://example.org/",
  );
  expect(shared({ share_title: "same", share_text: "same" })).toBe("same");
});

test("without anything shared there is no message, and a long one is cut", () => {
  expect(shared({ id: "1" })).toBeNull();
  expect(shared({ share_text: " " })).toBeNull();
  expect(shared({ share_files: "1" })).toBe("");
  expect(shared({ share_text: "x".repeat(50_000) })).toHaveLength(20_000);
});
