import { expect, test } from "vitest";
import type { ApprovalInfo, RequestPart } from "../../client/api";
import { permissionRequestOf, withApproval } from "./approvals.logic";

const part = (more: Partial<RequestPart>): RequestPart => ({
  kind: "text",
  label: "Message of the agent",
  text: "",
  path: null,
  resolved: null,
  old: null,
  new: null,
  hidden_bytes: 0,
  runs_by_itself: null,
  warning: null,
  ...more,
});

const command = (text: string) => part({ kind: "command", label: "Command", text });

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
  digest: "d",
  parts: [command("rm -rf build"), part({ kind: "folder", label: "Folder", text: "/workspace" })],
  complete: true,
  hidden_bytes: 0,
  names_nothing: false,
  runs_by_itself: false,
  asked_again: false,
  agent_options: [],
  lasting_effect: null,
  ...more,
});

test("a command is shown in full, with every answer", () => {
  const request = permissionRequestOf(row({}));
  expect(request.action).toBe("run a command");
  expect(request.title).toBe("Tidy up");
  expect(request.details.map(({ kind, label, text }) => ({ kind, label, text }))).toEqual([
    { kind: "command", label: "Exact command", text: "rm -rf build" },
    { kind: "text", label: "In folder", text: "/workspace" },
  ]);
  expect(request.warnings).toEqual([]);
  expect(request.digest).toBe("d");
  expect(request.choices.map((choice) => choice.answer)).toEqual(["once", "conversation", "always", "reject"]);
});

test("a title that repeats the command is left out", () => {
  expect(permissionRequestOf(row({ title: "rm -rf build" })).title).toBe("");
  expect(
    permissionRequestOf(row({ title: "one⟨U+000A⟩⟨U+000A⟩two⟨U+00", parts: [command("one\n\ntwo\nthree")] })).title,
  ).toBe("");
  expect(permissionRequestOf(row({ title: "harmless", parts: [command("one\ntwo")] })).title).toBe("harmless");
});

test("every part is shown in its order, also one of a kind that is not known", () => {
  const request = permissionRequestOf(
    row({
      kind: "new kind",
      parts: [
        part({ kind: "environment", label: "Environment", text: "A=1" }),
        part({ kind: "stdin", label: "Standard input", text: "yes" }),
        part({ kind: "new" as RequestPart["kind"], label: "Something", text: "{}" }),
        part({ kind: "diff", path: "a.py", old: null, new: "x" }),
        part({ kind: "path", label: "Path", path: "/etc/passwd", resolved: "/home/agent/x" }),
      ],
      agent_options: [
        { name: "Yes, and never ask again", kind: "allow_always", sent_for: null },
        { name: "Yes", kind: "allow_once", sent_for: "allow" },
      ],
    }),
  );
  expect(request.action).toBe("use a tool");
  expect(request.details.map(({ kind, label, text }) => [kind, label, text])).toEqual([
    ["text", "Environment", "A=1"],
    ["text", "Standard input", "yes"],
    ["text", "Something", "{}"],
    ["diff", "a.py", "x"],
    ["text", "Path", "/etc/passwd"],
    ["text", "Answers that the agent offers", "Yes, and never ask again (never sent)\nYes (sent when you allow)"],
  ]);
  expect(request.details[3]?.old).toBeNull();
  expect(request.details[4]?.warnings).toEqual(["This leads to /home/agent/x"]);
});

test("what the owner must know is said beside the answers", () => {
  const warnings = (more: Partial<ApprovalInfo>) => permissionRequestOf(row(more)).warnings.join();
  expect(warnings({ names_nothing: true })).toContain("names neither a command nor a path");
  expect(warnings({ complete: false, hidden_bytes: 4_200 })).toBe("4.2 kB of this request are not shown.");
  expect(warnings({ runs_by_itself: true })).toContain("runs by itself");
  expect(warnings({ asked_again: true })).toContain("did not count");
});

test("a file that runs by itself, a warning and a cut part are marked where they are", () => {
  const [detail] = permissionRequestOf(
    row({
      parts: [
        part({
          kind: "diff",
          path: ".git/hooks/pre-commit",
          old: "",
          new: "x",
          runs_by_itself: "a Git hook",
          warning: "This file has 2 names (hard links)",
          hidden_bytes: 10,
        }),
      ],
    }),
  ).details;
  expect(detail).toMatchObject({
    runsByItself: "a Git hook",
    warnings: ["This file has 2 names (hard links)", "10 B of this part are not shown"],
  });
});

test("a request that cannot be read can only be refused", () => {
  const request = permissionRequestOf(row({ parts: null as unknown as RequestPart[] }));
  expect(request.choices.map((choice) => choice.answer)).toEqual(["reject"]);
  expect(request.warnings[0]).toContain("cannot show this request");
});

test("a request without a subject cannot be allowed for longer than once", () => {
  expect(permissionRequestOf(row({ options: ["once", "reject"] })).choices.map((choice) => choice.label)).toEqual([
    "Once",
    "No",
  ]);
});

test("a lasting answer says that it allows more than the change that is shown", () => {
  const lasting_effect = "every change of /workspace/a, whatever its content";
  const request = permissionRequestOf(
    row({ kind: "edit", parts: [part({ kind: "diff", path: "/workspace/a", old: null, new: "x" })], lasting_effect }),
  );
  expect(request.choices.map((choice) => choice.effect)).toEqual([
    "Allow exactly this, once",
    "Allow every change of /workspace/a, whatever its content, for this conversation only",
    "Allow every change of /workspace/a, whatever its content, always, for all sessions",
    "Refuse this",
  ]);
  expect(request.grantNote).toContain("allows every change of /workspace/a, whatever its content");
});

test("only Freehold's own tool can put a host into the words of an answer", () => {
  const effects = (kind: string) =>
    permissionRequestOf(row({ kind, parts: [part({ text: "github.com:443" }), part({ kind: "input", text: "evil" })] }))
      .choices.map((choice) => choice.effect)
      .join();
  expect(effects("host")).toContain("Allow github.com:443, once");
  expect(effects("fetch")).not.toContain("github.com");
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
    row({ kind: "host", title: "x", details: {}, parts: [part({ text: "example.org:443\nto read the docs" })] }),
  );
  expect(request.choices.map((choice) => choice.effect)).toEqual([
    "Allow example.org:443, once",
    "Allow example.org:443, for this conversation only",
    "Allow example.org:443, always, for all sessions",
    "Refuse this",
  ]);
});
