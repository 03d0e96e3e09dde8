import { useMemo, useState } from "react";
import { CopyButton } from "../../../ui/CopyButton";
import { Icon, type IconName } from "../../../ui/Icon";
import { PlainText } from "../../../ui/PlainText";
import { PlainTextBoundary } from "../../../ui/PlainTextBoundary";
import { shortLine } from "../../../ui/plainText.logic";
import { visibleText } from "../../../ui/visibleText";
import { DiffTable } from "../../history/DiffTable";
import { type EditDiff, editDiffs } from "./editDiff.logic";
import { PathLink } from "./PathLink";
import { type Item, outputEnd, type ToolPart } from "./transcript.logic";
import { useFold, useTranscript } from "./transcriptContext";

type Tool = Extract<Item, { kind: "tool" }>;

const ICONS: Record<string, IconName> = {
  read: "file",
  edit: "edit",
  delete: "trash",
  move: "link",
  search: "search",
  execute: "terminal",
  think: "thought",
  fetch: "network",
  switch_mode: "settings",
};
const STATUS_WORDS: Record<string, string> = {
  pending: "waiting",
  in_progress: "running",
  completed: "done",
  failed: "failed",
};
const TONES: Record<string, string> = { failed: "alarm", in_progress: "leaf", pending: "amber" };
const MAX_PATHS = 20;
const MAX_PARTS = 10;
const MAX_TITLE = 500;

/** One tool call: its title and status in a line, its input and output folded. Everything in it is plain text. */
export function ToolCard({ item }: { item: Tool }) {
  const { endedTurns } = useTranscript();
  const [showAll, setShowAll] = useState(false);
  const parts = useMemo(() => (showAll ? item.parts : item.parts.slice(0, MAX_PARTS)), [item.parts, showAll]);
  const [presses, setPresses] = useState(0);
  const edits = useMemo(
    () =>
      editDiffs(
        parts.filter((part) => part.type === "diff"),
        presses,
      ),
    [parts, presses],
  );
  const [open, toggle] = useFold(item.key, edits.length > 0);
  const outputs = parts.filter((part): part is Extract<ToolPart, { type: "text" }> => part.type === "text");
  const isUnfinished = item.status !== "completed" && item.status !== "failed";
  const status = isUnfinished && endedTurns.has(item.turn) ? "stopped" : item.status;
  const paths = item.locations.filter((path) => !edits.some((edit) => edit.path === path));
  const isEmpty = edits.length === 0 && outputs.length === 0 && item.input === "" && paths.length === 0;
  const title = visibleText(shortLine(item.title, MAX_TITLE));
  return (
    <section role="group" className="conversation-tool" data-status={status} aria-label={`Tool: ${title}`}>
      <button
        type="button"
        className="conversation-fold"
        aria-expanded={isEmpty ? undefined : open}
        disabled={isEmpty}
        onClick={toggle}
      >
        <Icon name={ICONS[item.does] ?? "tool"} size={16} />
        <span className="conversation-fold-title">{title}</span>
        {edits.length > 0 && <EditCounts edits={edits} />}
        {status === "completed" ? (
          <span className="conversation-tool-done" role="img" aria-label="done">
            <Icon name="check" size={14} />
          </span>
        ) : (
          <span className="chip" data-tone={TONES[status]}>
            {STATUS_WORDS[status] ?? status}
          </span>
        )}
        {!isEmpty && <Icon name="chevron" size={14} />}
      </button>
      {open && !isEmpty && (
        <div className="conversation-tool-body">
          {paths.length > 0 && (
            <p className="conversation-tool-paths">
              {paths.slice(0, MAX_PATHS).map((path) => (
                <PathLink key={path} path={path} />
              ))}
            </p>
          )}
          {item.input !== "" && <Output text={item.input} label="Input" />}
          {edits.map((edit, index) => (
            <Edit key={index} path={edit.path} diff={edit} onMore={() => setPresses(presses + 1)} />
          ))}
          {outputs.map((part, index) => (
            <Output key={index} text={part.text} label="Output" />
          ))}
          {parts.length < item.parts.length && (
            <button type="button" className="text-button" onClick={() => setShowAll(true)}>
              Show {item.parts.length - parts.length} more parts
            </button>
          )}
        </div>
      )}
    </section>
  );
}

function EditCounts({ edits }: { edits: readonly EditDiff[] }) {
  const added = edits.reduce((sum, edit) => sum + edit.added, 0);
  const removed = edits.reduce((sum, edit) => sum + edit.removed, 0);
  return (
    <span className="line-counts">
      <ins>+{added}</ins> <del>−{removed}</del>
    </span>
  );
}

function Edit({ path, diff, onMore }: { path: string; diff: EditDiff; onMore: () => void }) {
  return (
    <figure className="conversation-edit">
      <figcaption>
        <PathLink path={path} />
      </figcaption>
      {diff.lines.length + diff.more === 0 ? (
        <p className="quiet">No line changed.</p>
      ) : (
        <PlainTextBoundary text={diff.lines.map((line) => line.text).join("\n")}>
          <DiffTable lines={diff.lines} more={diff.more} onMore={onMore} />
        </PlainTextBoundary>
      )}
    </figure>
  );
}

function Output({ text, label }: { text: string; label: string }) {
  const [showAll, setShowAll] = useState(false);
  const { shown, hidden } = useMemo(() => outputEnd(text), [text]);
  return (
    <figure className="conversation-output">
      <figcaption>
        <span>{label}</span>
        {hidden > 0 && (
          <button type="button" className="text-button" onClick={() => setShowAll(!showAll)}>
            {showAll ? "Show only the end" : `Show ${hidden} more lines above`}
          </button>
        )}
        <CopyButton text={text} />
      </figcaption>
      <PlainText text={showAll ? text : shown} label={label} />
    </figure>
  );
}
