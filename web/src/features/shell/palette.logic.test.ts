import { expect, test } from "vitest";
import { choose, score } from "./palette.logic";

test("what begins with the words comes first, then words inside, then scattered letters", () => {
  const titles = ["Go to Files", "Files", "Profiles", "Find lines"];
  const commands = titles.map((title) => ({ id: title, title, group: "", run: () => undefined }));
  expect(choose(commands, "file").map((command) => command.title)).toEqual(["Files", "Go to Files", "Profiles", "Find lines"]);
  expect(choose(commands, "").map((command) => command.title)).toEqual(titles);
});

test("letters must come in order", () => {
  expect(score("Redo", "rd")).not.toBeNull();
  expect(score("Redo", "dr")).toBeNull();
});
