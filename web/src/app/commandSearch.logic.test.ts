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

test("every command is listed when nothing is typed", () => {
  const commands = Array.from({ length: 200 }, (_, at) => ({
    id: `${at}`,
    title: "A",
    group: "",
    run: () => undefined,
  }));
  expect(searchCommands(commands, "")).toHaveLength(200);
});

test("letters must be in order", () => {
  expect(matchScore("Redo", "rd")).not.toBeNull();
  expect(matchScore("Redo", "dr")).toBeNull();
});

test("of equal matches commands come before sessions, and these before files", () => {
  const item = (title: string, group: string) => ({ id: group, title, group, run: () => undefined });
  const all = [item("Settings", "Page"), item("Settings of the page", "Session"), item("settings.json", "File")];
  expect(searchCommands(all, "settings").map((one) => one.group)).toEqual(["Page", "Session", "File"]);
  expect(searchCommands([...all, item("src/theme.css", "File")], "theme").map((one) => one.title)).toEqual([
    "src/theme.css",
  ]);
});
