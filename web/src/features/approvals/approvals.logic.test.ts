import { expect, test } from "vitest";
import type { ApprovalInfo } from "../../client/api";
import { permissionRequestOf, withApproval } from "./approvals.logic";

const row = (more: Partial<ApprovalInfo>): ApprovalInfo => ({
  id: "a",
  session: "s",
  turn: 1,
  at: "2026-01-01T00:00:00Z",
  state: "pending",
  answer: null,
  note: null,
  options: ["once", "conversation", "always", "reject"] as ApprovalInfo["options"],
  tool: "t",
  kind: "execute",
  title: "Tidy up",
  details: { command: "rm -rf build", folder: "/workspace" },
  ...more,
});

test("a command is shown in full, with every answer", () => {
  const request = permissionRequestOf(row({}));
  expect(request.action).toBe("run a command");
  expect(request.title).toBe("Tidy up");
  expect(request.details).toEqual([
    { kind: "command", label: "Exact command", text: "rm -rf build" },
    { kind: "text", label: "In folder", text: "/workspace" },
  ]);
  expect(request.choices.map((choice) => choice.answer)).toEqual(["once", "conversation", "always", "reject"]);
});

test("a title that repeats the command is left out", () => {
  expect(permissionRequestOf(row({ title: "rm -rf build" })).title).toBe("");
  expect(
    permissionRequestOf(row({ title: "one⟨U+000A⟩⟨U+000A⟩two⟨U+00", details: { command: "one\n\ntwo\nthree" } })).title,
  ).toBe("");
  expect(permissionRequestOf(row({ title: "harmless", details: { command: "one\ntwo" } })).title).toBe("harmless");
});

test("an unknown detail is shown as it came", () => {
  const request = permissionRequestOf(row({ kind: "new kind", details: { strange: { deep: [1] } } }));
  expect(request.action).toBe("use a tool");
  expect(request.details).toEqual([{ kind: "text", label: "strange", text: '{\n  "deep": [\n    1\n  ]\n}' }]);
});

test("a request without a subject cannot be allowed for longer than once", () => {
  expect(permissionRequestOf(row({ options: ["once", "reject"] })).choices.map((choice) => choice.label)).toEqual([
    "Once",
    "No",
  ]);
});

test("a question offers its options, yes and no, or a text field", () => {
  const question = (options: string[], free_text: boolean) =>
    permissionRequestOf(row({ kind: "other", details: { kind: "question", input: "Which?", options, free_text } }));
  expect(question(["red", "blue"], false).choices.map(({ label, note }) => [label, note])).toEqual([
    ["red", "red"],
    ["blue", "blue"],
    ["No", undefined],
  ]);
  expect(question([], false).choices.map((choice) => choice.label)).toEqual(["Yes", "No"]);
  expect(question([], true)).toMatchObject({ acceptsText: true, choices: [{ label: "No" }] });
});

test("open approvals stay in order, and a repeated event changes nothing", () => {
  const first = row({ id: "1", at: "1" });
  const second = row({ id: "2", at: "2" });
  expect(withApproval(withApproval([second], first), first).map((one) => one.id)).toEqual(["1", "2"]);
  expect(withApproval([first, second], { ...first, state: "answered" })).toEqual([second]);
});

test("a request for the network says exactly what each answer grants", () => {
  const request = permissionRequestOf(
    row({ kind: "fetch", title: "x", details: { input: "example.org:443\nto read the docs" } }),
  );
  expect(request.choices.map((choice) => choice.effect)).toEqual([
    "Allow example.org:443, once",
    "Allow example.org:443, for this conversation only",
    "Allow example.org:443, always, for all sessions",
    "Refuse this",
  ]);
});
