import { expect, test } from "vitest";
import { attachmentPath, isImage, withFiles } from "./attachments.logic";

const now = new Date(2026, 10, 16, 6, 8, 5);

test("an attached file has a name of its own without spaces", () => {
  expect(attachmentPath("My notes (1).pdf", now, 0)).toBe("attachments/20261116-060805-My-notes-1-.pdf");
  expect(attachmentPath("a.txt", now, 1)).toBe("attachments/20261116-060805-2-a.txt");
  expect(attachmentPath("../../.ssh/id", now, 0)).toBe("attachments/20261116-060805-ssh-id");
  expect(attachmentPath("   ", now, 0)).toBe("attachments/20261116-060805-file");
  expect(attachmentPath("größe.txt", now, 0)).toBe("attachments/20261116-060805-größe.txt");
});

test("files are named at the end of the message", () => {
  expect(withFiles("", ["a"])).toBe("@a ");
  expect(withFiles("look at", ["a", "b"])).toBe("look at @a @b ");
  expect(withFiles("look at ", [])).toBe("look at ");
});

test("only images that models take are sent as images", () => {
  expect(isImage({ type: "image/png" })).toBe(true);
  expect(isImage({ type: "image/svg+xml" })).toBe(false);
  expect(isImage({ type: "" })).toBe(false);
});
