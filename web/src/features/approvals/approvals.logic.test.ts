import { expect, test } from "vitest";
import type { ApprovalView } from "../../client/api";
import { answerOf, askOf, changedLines, keysOf, SEEN_FOR, wasSeen, withApproval, type Key } from "./approvals.logic";

const row = (more: Partial<ApprovalView>): ApprovalView => ({
  id: "a",
  session: "s",
  turn: 1,
  at: "2026-01-01T00:00:00Z",
  state: "pending",
  answer: null,
  note: null,
  options: ["once", "session", "always", "reject"],
  tool: "t",
  kind: "execute",
  title: "Tidy up",
  details: { command: "rm -rf build", folder: "/workspace" },
  ...more,
});

test("a command is shown whole, in our words, with every answer", () => {
  const ask = askOf(row({}));
  expect(ask.wants).toBe("run a command");
  expect(ask.title).toBe("Tidy up");
  expect(ask.parts).toEqual([
    { kind: "command", label: "The exact command", text: "rm -rf build" },
    { kind: "text", label: "In the folder", text: "/workspace" },
  ]);
  expect(ask.replies.map((choice) => choice.answer)).toEqual(["once", "session", "always", "reject"]);
});

test("the agent's title is left out when it says what the command says", () => {
  expect(askOf(row({ title: "rm -rf build" })).title).toBe("");
  expect(askOf(row({ title: "one⟨U+000A⟩⟨U+000A⟩two⟨U+00", details: { command: "one\n\ntwo\nthree" } })).title).toBe("");
  expect(askOf(row({ title: "harmless", details: { command: "one\ntwo" } })).title).toBe("harmless");
});

test("a detail that is not known is shown as it came", () => {
  const ask = askOf(row({ kind: "new kind", details: { strange: { deep: [1] } } }));
  expect(ask.wants).toBe("use a tool");
  expect(ask.parts).toEqual([{ kind: "text", label: "strange", text: '{\n  "deep": [\n    1\n  ]\n}' }]);
});

test("without a subject there is no lasting yes", () => {
  expect(askOf(row({ options: ["once", "reject"] })).replies.map((choice) => choice.label)).toEqual(["Once", "No"]);
});

test("a question offers its choices, yes and no, or words", () => {
  const question = (options: string[], free_text: boolean) => askOf(row({ kind: "other", details: { kind: "question", input: "Which?", options, free_text } }));
  expect(question(["red", "blue"], false).replies.map(({ label, note }) => [label, note])).toEqual([
    ["red", "red"],
    ["blue", "blue"],
    ["No", undefined],
  ]);
  expect(question([], false).replies.map((choice) => choice.label)).toEqual(["Yes", "No"]);
  expect(question([], true)).toMatchObject({ free: true, replies: [{ label: "No" }] });
});

test("whatever changed is there, and a little around it", () => {
  const old = Array.from({ length: 9 }, (_, line) => `l${line}`);
  const made = old.map((line) => (line === "l4" ? "new" : line));
  const lines = changedLines(old.join("\n"), made.join("\n"));
  expect(lines.map((line) => `${line.kind[0]} ${line.text}`)).toEqual(["g 1 unchanged line", "s l1", "s l2", "s l3", "r l4", "a new", "s l5", "s l6", "s l7", "g 1 unchanged line"]);
  expect(changedLines("", "a\nb\n")).toEqual([
    { kind: "added", text: "a" },
    { kind: "added", text: "b" },
  ]);
  expect(changedLines("a\n", "a")).toEqual([
    { kind: "same", text: "a" },
    { kind: "gap", text: "The last line has no line end" },
  ]);
  expect(changedLines("a\na", "a")).toEqual([
    { kind: "same", text: "a" },
    { kind: "removed", text: "a" },
  ]);
});

test("those that wait stay in order, and one told twice is there once", () => {
  const first = row({ id: "1", at: "1" });
  const second = row({ id: "2", at: "2" });
  expect(withApproval(withApproval([second], first), first).map((one) => one.id)).toEqual(["1", "2"]);
  expect(withApproval([first, second], { ...first, state: "answered" })).toEqual([second]);
});

test("a number answers, but never while something is typed unless Alt is held", () => {
  const key = (more: Partial<Key>): Key => ({ key: "2", code: "Digit2", altKey: false, ctrlKey: false, metaKey: false, shiftKey: false, typing: false, ...more });
  expect(answerOf(key({}), 4)).toBe(1);
  expect(answerOf(key({ typing: true }), 4)).toBeNull();
  expect(answerOf(key({ typing: true, altKey: true, key: "™" }), 4)).toBe(1);
  expect(answerOf(key({}), 1)).toBeNull();
  expect(answerOf(key({ ctrlKey: true }), 4)).toBeNull();
  expect(answerOf(key({ key: "é", code: "KeyE" }), 4)).toBeNull();
});

test("with a session on the screen keys answer what it asks, and never the bar", () => {
  expect(keysOf("dock", true)).toBe("page");
  expect(keysOf("bar", true)).toBe("none");
  expect(keysOf("bar", false)).toBe("alt");
});

test("a key answers only what was seen for a while before it was pressed", () => {
  expect(SEEN_FOR).toBe(600);
  expect(wasSeen(1_000, 1_599)).toBe(false);
  expect(wasSeen(1_000, 1_600)).toBe(true);
  expect(wasSeen(1_000, 900)).toBe(false);
  expect(wasSeen(null, 9_000)).toBe(false);
});
