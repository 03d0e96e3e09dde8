import { expect, test } from "vitest";
import type { LookedSkill, Skill, SkillContent } from "../../client/api";
import { concernsSkills, findingText, offerOf, sourceText, useText } from "./skills.logic";

const CONTENT: SkillContent = {
  name: "charts",
  description: "Makes charts.",
  digest: "a".repeat(64),
  size: 1,
  license: null,
  compatibility: null,
  allowed_tools: null,
  metadata: {},
  instructions: "",
  files: [],
  scripts: [],
  findings: [],
};
const SOURCE = { kind: "shipped", place: "shipped", part: "charts", commit: null } as const;
const LOOKED: LookedSkill = { content: CONTENT, source: SOURCE, in_use: null, changes: [] };

test("a source is told with its place and its commit", () => {
  expect(sourceText(SOURCE)).toBe("comes with Freehold");
  expect(sourceText({ kind: "folder", place: "/skills", part: "", commit: null })).toBe("from /skills");
  const remote = { kind: "remote", place: "https://x/y", part: "charts", commit: "0123456789abcdef" } as const;
  expect(sourceText(remote)).toBe("from https://x/y, charts, commit 0123456789ab");
});

test("the agents that have loaded a skill are told, the most frequent first", () => {
  const skill: Skill = {
    name: "charts",
    description: "",
    digest: "",
    size: 1,
    files: 1,
    source: SOURCE,
    added: "1970-01-01T00:00:00Z",
    on: true,
    use: { count: 0, last: null, agents: {} },
  };
  expect(useText(skill)).toBe("never loaded");
  const use = { count: 4, last: "", agents: { codex: 1, claude: 3 } };
  expect(useText({ ...skill, use })).toBe("loaded in 4 turns: claude 3×, codex 1×");
});

test("a version is offered unless it is refused or in use", () => {
  expect(offerOf(LOOKED)).toEqual({ label: "Add", possible: true });
  expect(offerOf({ ...LOOKED, in_use: "b" })).toEqual({ label: "Use this version", possible: true });
  expect(offerOf({ ...LOOKED, in_use: CONTENT.digest })).toEqual({ label: "In use", possible: false });
  const finding = { level: "refused", path: "SKILL.md", line: 3, words: "has a hidden character" } as const;
  expect(offerOf({ ...LOOKED, content: { ...CONTENT, findings: [finding] } }).possible).toBe(false);
  expect(findingText(finding)).toBe("SKILL.md, line 3: has a hidden character");
});

test("only events of skills concern the page", () => {
  expect(concernsSkills({ kind: "skill.loaded" })).toBe(true);
  expect(concernsSkills({ kind: "file.changed" })).toBe(false);
  expect(concernsSkills(null)).toBe(false);
});
