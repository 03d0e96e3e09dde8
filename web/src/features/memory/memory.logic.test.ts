import { expect, test } from "vitest";
import type { Memory } from "../../client/api";
import {
  concernsMemory,
  isQuoted,
  isUntrusted,
  mergePages,
  namespaceText,
  originText,
  searchNote,
  usageText,
} from "./memory.logic";

function memory(id: string, fields: Partial<Memory> = {}): Memory {
  return {
    id,
    namespace: "shared",
    text: id,
    origin: { kind: "owner", session: null, turn: null, note: null },
    created: "2026-01-01T00:00:00Z",
    created_by: "owner",
    updated: "2026-01-01T00:00:00Z",
    expires: null,
    pinned: false,
    used: 0,
    last_used: null,
    version: 1,
    ...fields,
  };
}

test("the origin is told in words, and only the owner's word is not quoted", () => {
  const web = memory("a", { origin: { kind: "web", session: "s", turn: 2, note: "https://example.com" } });
  expect(originText(web)).toBe("from a web page");
  expect([web, memory("b"), memory("c", { origin: { ...web.origin, kind: "agent" } })].map(isUntrusted)).toEqual([
    true,
    false,
    false,
  ]);
  expect(originText(memory("b"))).toBe("from you");
  expect([web, memory("b")].map(isQuoted)).toEqual([true, false]);
});

test("namespaces have names", () => {
  expect(["shared", "agent:claude", "project:house"].map(namespaceText)).toEqual([
    "Shared",
    "Agent claude",
    "Project house",
  ]);
});

test("use is counted", () => {
  expect(usageText(memory("a"))).toBe("never used");
  expect(usageText(memory("a", { used: 1, last_used: "2026-01-01T00:00:00Z" }))).toContain("used 1 time, last");
});

test("a search says what it could not do", () => {
  expect(searchNote({ matches: [], by: "meaning", waiting: 0 })).toBeNull();
  expect(searchNote({ matches: [], by: "meaning", waiting: 1 })).toContain("1 memory can");
  expect(searchNote({ matches: [], by: "words", waiting: 0 })).toContain("exact words");
});

test("only events of memories and slots concern the list", () => {
  expect([{ kind: "memory.stored" }, { kind: "slot.lost" }, { kind: "beads.x" }, {}, null].map(concernsMemory)).toEqual(
    [true, true, false, false, false],
  );
});

test("pages are joined without doubles", () => {
  const pages = mergePages([memory("a"), memory("b")], [memory("b"), memory("c")]);
  expect(pages.map((one) => one.id)).toEqual(["a", "b", "c"]);
});
