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

test("of 10,000 files the one whose name was typed comes first, and none is left out", () => {
  const files = Array.from({ length: 10_000 }, (_, at) => ({
    id: `file-${at}`,
    title: `folder/${at % 10}/name${at}.txt`,
    group: "File",
    run: () => undefined,
  }));
  const searched = [{ id: "page", title: "Files", group: "Page", run: () => undefined }, ...files];
  expect(searchCommands(searched, "name77.txt")[0]?.title).toBe("folder/7/name77.txt");
  expect(searchCommands(searched, "name77")[0]?.title).toBe("folder/7/name77.txt");
  expect(searchCommands(searched, "f")).toHaveLength(10_001);
  const scores = searchCommands(searched, "e7").map((one) => matchScore(one.title, "e7") ?? -1);
  expect(scores).toEqual(scores.toSorted((a, b) => b - a));
});

test("a whole name comes before longer ones that begin with it", () => {
  const titles = ["src/notes.txt.bak", "notes.txt.old", "notes/notes.txt", "notes.txt"];
  const commands = titles.map((title) => ({ id: title, title, group: "", run: () => undefined }));
  expect(searchCommands(commands, "notes.txt").map((one) => one.title)).toEqual([
    "notes.txt",
    "notes.txt.old",
    "notes/notes.txt",
    "src/notes.txt.bak",
  ]);
});
