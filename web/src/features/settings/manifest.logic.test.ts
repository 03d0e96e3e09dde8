import { expect, test } from "vitest";
import type { ManifestSetting } from "../../client/api";
import { changeText, matching, placeText, readTyped, typedText } from "./manifest.logic";

const setting = (part: Partial<ManifestSetting>): ManifestSetting => ({
  key: "history.quota",
  kind: "size",
  choices: [],
  value: '"2GiB"',
  default: '"10GiB"',
  meaning: "How much",
  place: "file",
  file: "freehold.toml",
  line: 3,
  is_live: false,
  can_change: true,
  waits: false,
  ...part,
});

test("a value is typed without quotes and sent as what it is", () => {
  expect(typedText(setting({}))).toBe("2GiB");
  expect(typedText(setting({ kind: "list", value: '["a", "b"]' }))).toBe("a, b");
  expect(typedText(setting({ value: null }))).toBe("");
  expect(readTyped("size", " 3GiB ")).toBe("3GiB");
  expect(readTyped("list", "a,, b")).toEqual(["a", "b"]);
  expect(readTyped("number", "1.5")).toBe(1.5);
  expect(readTyped("number", "many")).toBeUndefined();
  expect(readTyped("truth", "false")).toBe(false);
  expect(readTyped("text", "")).toBeNull();
});

test("a setting says where it is and what to change", () => {
  expect(placeText(setting({}))).toBe("freehold.toml, line 3");
  expect(placeText(setting({ place: "default" }))).toBe("default");
  expect(changeText(setting({}))).toBe("Change line 3 of freehold.toml.");
  expect(changeText(setting({ place: "default", line: null }))).toBe("Add quota under [history] in freehold.toml.");
});

test("settings are found by words of their name and meaning", () => {
  const sections = [
    { name: "history", meaning: "", settings: [setting({}), setting({ key: "history.quiet", place: "default" })] },
  ];
  expect(matching(sections, "quota much", false)[0]?.settings).toHaveLength(1);
  expect(matching(sections, "", true)[0]?.settings).toHaveLength(1);
  expect(matching(sections, "nothing", false)).toEqual([]);
});
