// @vitest-environment happy-dom
import { act, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { expect, test } from "vitest";
import type { ApprovalInfo, RequestPart, SessionEvent } from "../../client/api";
import { ToolCard } from "../sessions/conversation/ToolCard";
import { transcriptItems } from "../sessions/conversation/transcript.logic";
import { TranscriptContext, type TranscriptShared } from "../sessions/conversation/transcriptContext";
import { permissionRequestOf } from "./approvals.logic";
import { PermissionDetails } from "./PermissionDetails";

interface EditedFile {
  path: string;
  old: string | null;
  new: string;
}

const shared: TranscriptShared = {
  session: "s",
  toggled: new Set(),
  toggle: () => undefined,
  endedTurns: new Set(),
  lastPrompt: null,
  turnStateOf: () => ({ kind: "none" }) as unknown as ReturnType<TranscriptShared["turnStateOf"]>,
  onAction: () => undefined,
  onRewind: () => undefined,
};

const numbered = (count: number, word = "line"): string[] =>
  Array.from({ length: count }, (_, line) => `${word} ${line}`);
const textOf = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");
const edit = (old: string | null, now: string, path = "/workspace/a.txt"): EditedFile => ({ path, old, new: now });
const LONG = numbered(400);
/** Lines of which every third has this word. */
const thirds = (word: string): string =>
  textOf(numbered(310).map((line, at) => (at % 3 === 0 ? `${line} ${word}` : line)));
const MORE = /^Show (more$|.* more (lines|parts))/;

const asked = (edits: readonly EditedFile[]): ReactNode => {
  const part = { label: "Change", text: "", resolved: null, hidden_bytes: 0, runs_by_itself: null, warning: null };
  const row: ApprovalInfo = {
    id: "a",
    session: "s",
    turn: 1,
    at: "2026-11-15T10:00:00Z",
    state: "pending",
    answer: null,
    note: null,
    options: ["once", "reject"],
    tool: "t",
    kind: "edit",
    title: "Edit",
    details: {},
    digest: "d",
    parts: edits.map((one): RequestPart => ({ ...part, kind: "diff", ...one })),
    complete: true,
    hidden_bytes: 0,
    names_nothing: false,
    runs_by_itself: false,
    asked_again: false,
    agent_options: [],
    lasting_effect: null,
  };
  return <PermissionDetails details={permissionRequestOf(row).details} />;
};

const done = (edits: readonly EditedFile[]): ReactNode => {
  const content = edits.map((one) => ({ type: "diff", ...one }));
  const data = { id: "t", title: "Edit", kind: "edit", status: "completed", locations: [], content, raw_input: null };
  const event: SessionEvent = { seq: 1, at: "2026-11-15T10:00:00.000Z", turn: 1, kind: "tool", data };
  const [item] = transcriptItems([event]);
  if (item?.kind !== "tool") throw new Error("no tool call");
  return (
    <TranscriptContext value={shared}>
      <ToolCard item={item} />
    </TranscriptContext>
  );
};

/** The lines of each table, when everything that is left out was asked for. */
async function drawnLines(drawn: ReactNode): Promise<string[][]> {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.createElement("div");
  const root = createRoot(place);
  await act(async () => root.render(drawn));
  for (;;) {
    const more = [...place.querySelectorAll("button")].find(({ textContent }) => MORE.test(textContent));
    if (more === undefined) break;
    await act(async () => more.click());
  }
  const lines = [...place.querySelectorAll("figure")].map((figure) =>
    [...figure.querySelectorAll("tr")].map((row) => {
      const [old, now, sign, text] = [...row.querySelectorAll("td")].map((cell) => cell.textContent);
      // A gap can be opened where nothing but the request says what is in it.
      return `${row.dataset["kind"]} ${old} ${now} ${sign} ${text?.replace(/^Show (?=\d+ unchanged)/, "")}`;
    }),
  );
  await act(async () => root.unmount());
  return lines;
}

test.each([
  ["a change in the middle of a long file", [edit(textOf(LONG), textOf(LONG.with(200, "other")))]],
  [
    "changes far from each other",
    [edit(textOf(LONG), textOf(LONG.with(3, "one").with(300, "two").with(306, "three")))],
  ],
  ["a new file", [edit(null, "one\ntwo\n")]],
  ["an emptied file", [edit("one\ntwo\n", "")]],
  ["a line break that is no longer at the end", [edit("one\ntwo\n", "one\ntwo")]],
  ["characters that cannot be seen", [edit("a\n", "a\u202eb\u200b\n\u001b[31m\n")]],
  ["no change", [edit("same\n", "same\n")]],
  ["more lines than are drawn at once", [edit(textOf(numbered(700)), textOf(numbered(700, "other")))]],
  [
    "several files, more than is compared line by line",
    Array.from({ length: 11 }, (_, file) => edit(thirds("old"), thirds("new"), `/workspace/${file}.txt`)),
  ],
])("%s: the request shows the same lines as the tool call afterwards", async (_, edits) => {
  const lines = await drawnLines(asked(edits));
  expect(lines).toHaveLength(edits.length);
  expect(lines.every((one) => one.length > 0)).toBe(edits.every((one) => one.old !== one.new));
  expect(await drawnLines(done(edits))).toEqual(lines);
});

test("a line is whole in the request, also where the tool call shortens it", async () => {
  const edits = [edit(null, `${"x".repeat(5_000)}end\n`)];
  const [[line]] = (await drawnLines(asked(edits))) as [[string]];
  expect(line).toMatch(/xend$/);
  const [[short]] = (await drawnLines(done(edits))) as [[string]];
  expect(short.length).toBeLessThan(2_100);
});
