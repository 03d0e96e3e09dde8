import { expect, test } from "vitest";
import { matchScore, searchCommands } from "./commandSearch.logic";

test("titles that begin with the text come first, then those that contain it, then scattered letters", () => {
  const titles = ["Go to Files", "Files", "Profiles", "Find lines"];
  const commands = titles.map((title) => ({ id: title, title, group: "", run: () => undefined }));
  expect(searchCommands(commands, "file").map((command) => command.title)).toEqual([
    "Files",
    "Go to Files",
    "Profiles",
    "Find lines",
  ]);
  expect(searchCommands(commands, "").map((command) => command.title)).toEqual(titles);
});

test("letters must be in order", () => {
  expect(matchScore("Redo", "rd")).not.toBeNull();
  expect(matchScore("Redo", "dr")).toBeNull();
});
