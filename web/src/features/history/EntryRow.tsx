import { useState } from "react";
import type { HistoryDiff, HistoryEntry } from "../../client/api";
import { request } from "../../client/http";
import { useResource } from "../../data/resource";
import { formatDateTime, formatTime, secondsOf } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { PlainTextBoundary } from "../../ui/PlainTextBoundary";
import { go } from "../../ui/route";
import { useToasts } from "../../ui/Toasts";
import { UnifiedDiffTable } from "./DiffTable";
import {
  changeCounts,
  entryActor,
  entryTitle,
  type FileDiff,
  fileDiffs,
  type HistoryAction,
  type Turn,
  turnOf,
} from "./history.logic";

interface EntryProps {
  entry: HistoryEntry;
  effective: boolean;
  newest: boolean;
  /** The entry before its turn, when the turn has several entries. */
  start: number | null;
  /** Only the changes of this path are shown. */
  path: string | null;
  open: boolean;
  onToggle: (id: number) => void;
  onAct: (action: HistoryAction) => void;
  onRewind: (turn: Turn) => void;
  onChanged: () => void;
}

export function EntryRow(props: EntryProps) {
  const { entry, effective, newest, open, onToggle } = props;
  const lines = (entry.lines_added ?? 0) + (entry.lines_removed ?? 0) > 0;
  return (
    <div className="history-entry" data-kind={entry.kind} data-undone={!effective || undefined}>
      <span className="history-knot" aria-hidden="true">
        {entry.kind === "undo" || entry.kind === "redo" ? <Icon name={entry.kind} size={14} /> : null}
      </span>
      <button className="history-entry-head" aria-expanded={open} onClick={() => onToggle(entry.id)}>
        <span className="history-entry-title">{entryTitle(entry)}</span>
        <span className="history-entry-facts">
          <span>#{entry.id}</span>
          {entry.equals !== entry.id && <span>state of #{entry.equals}</span>}
          <span>{entryActor(entry)}</span>
          <span>{changeCounts(entry)}</span>
          {lines && (
            <span className="line-counts">
              <ins>+{entry.lines_added}</ins> <del>−{entry.lines_removed}</del>
            </span>
          )}
          {!effective && <span className="chip">undone</span>}
          {entry.good && (
            <span className="chip" data-tone="leaf">
              known good
            </span>
          )}
          {newest && (
            <span className="chip" data-tone="leaf">
              now
            </span>
          )}
        </span>
        <time dateTime={entry.at} title={formatDateTime(secondsOf(entry.at))}>
          {formatTime(secondsOf(entry.at))}
        </time>
        <Icon name="chevron" size={16} />
      </button>
      {open && <EntryBody {...props} />}
    </div>
  );
}

function EntryBody({ entry, start, path, onAct, onRewind, onChanged }: EntryProps) {
  const { value, problem, reload } = useResource<HistoryDiff>(
    `/v1/history/${entry.id}/diff${path === null ? "" : `?path=${encodeURIComponent(path)}`}`,
  );
  const toasts = useToasts();
  const turn = turnOf(entry);
  const toggleGood = () =>
    request(`/v1/history/${entry.id}/good`, { method: "POST", body: { good: !entry.good } })
      .then(onChanged)
      .catch(toasts.failed);
  const files = value === null ? [] : fileDiffs(value.files);
  return (
    <div className="history-entry-body">
      {entry.notes.map((note) => (
        <p key={note} className="quiet">
          {note}
        </p>
      ))}
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {value === null && problem === null && <p className="quiet">Loading…</p>}
      {value !== null && files.length === 0 && <p className="quiet">No file changed.</p>}
      {files.map((file) => (
        <ChangedFile
          key={file.path}
          file={file}
          startOpen={files.length <= 3}
          onRestore={() => onAct({ action: "restore", entry: entry.id, paths: [file.path] })}
        />
      ))}
      {value !== null && value.total > files.length && (
        <p className="quiet">and {value.total - files.length} more files</p>
      )}
      <div className="history-entry-actions">
        <button className="small" onClick={() => onAct({ action: "undo", entry: entry.id })}>
          <Icon name="undo" size={16} /> Undo this and later changes
        </button>
        <button className="small" onClick={() => onAct({ action: "revert", entry: entry.id, choose: {} })}>
          Revert only this
        </button>
        <button className="small" onClick={() => onAct({ action: "restore", entry: entry.id, paths: [] })}>
          Restore this state
        </button>
        {turn && (
          <button className="small" onClick={() => onRewind(turn)}>
            Rewind the conversation…
          </button>
        )}
      </div>
      <div className="history-entry-links">
        <button className="text-button" onClick={() => go(`/history/diff?old=${start ?? "before"}&new=${entry.id}`)}>
          Show all changes{start !== null && " of this turn"}
        </button>
        <button className="text-button" onClick={() => go(`/history/diff?old=${entry.id}&new=now`)}>
          Compare with now
        </button>
        <button className="text-button" onClick={() => void toggleGood()}>
          {entry.good ? "Remove the known-good mark" : "Mark as known good"}
        </button>
      </div>
    </div>
  );
}

function ChangedFile({ file, startOpen, onRestore }: { file: FileDiff; startOpen: boolean; onRestore: () => void }) {
  const [open, setOpen] = useState(startOpen);
  const hasText = file.text !== "";
  return (
    <section className="history-file">
      <header>
        <button
          className="history-file-name"
          aria-expanded={hasText ? open : undefined}
          onClick={() => setOpen(!open)}
          disabled={!hasText}
        >
          {hasText && <Icon name="chevron" size={14} />}
          <span
            className="chip"
            data-tone={file.word === "removed" ? "alarm" : file.word === "added" ? "leaf" : "amber"}
          >
            {file.word}
          </span>
          <span className="path">{file.path}</span>
          {file.note && <span className="quiet">{file.note}</span>}
        </button>
        {file.word !== "removed" && (
          <button className="text-button" onClick={onRestore} aria-label={`Restore ${file.path} as it was here`}>
            Restore
          </button>
        )}
      </header>
      {open && hasText && (
        <PlainTextBoundary text={file.text}>
          <UnifiedDiffTable text={file.text} />
        </PlainTextBoundary>
      )}
    </section>
  );
}
