import type { HistoryComparison } from "../../../client/api";
import { useResource } from "../../../data/resource";
import { countOf } from "../../../ui/format";
import { Icon } from "../../../ui/Icon";
import { Notice } from "../../../ui/Notice";
import { followLink, go } from "../../../ui/route";
import { visibleText } from "../../../ui/visibleText";
import { diffPath } from "../../diff/diff.logic";
import { changeCounts } from "../../history/history.logic";
import { useShowBeside } from "../../workbench/workbenchContext";
import { TurnRetry } from "./TurnRetry";
import { type Changes, endingText, type Item } from "./transcript.logic";
import { useFold, useTranscript } from "./transcriptContext";
import { hasChanged, turnAction } from "./turnState.logic";

type EndedTurn = Extract<Item, { kind: "ended" }>;

/** Reasons of a turn that did not come to its end. */
const FAILED: ReadonlySet<string> = new Set(["error", "interrupted"]);

/** How a turn ended, what it used, which files it changed, and the button that undoes it. */
export function TurnSummary({ item }: { item: EndedTurn }) {
  const ending = endingText(item.reason);
  return (
    <footer className="conversation-summary">
      {hasChanged(item.changes) && <ChangedFiles item={item} changes={item.changes} />}
      <span className="conversation-facts">
        {ending && <span data-tone={item.reason === "error" ? "alarm" : "amber"}>{ending}</span>}
        {!hasChanged(item.changes) && <span>{item.changes === null ? "file changes unknown" : "no file changed"}</span>}
        <span>{item.usage}</span>
      </span>
      {FAILED.has(item.reason) && <TurnRetry turn={item.turn} />}
    </footer>
  );
}

function ChangedFiles({ item, changes }: { item: EndedTurn; changes: Changes }) {
  const { session, turnStateOf, onAction } = useTranscript();
  const show = useShowBeside();
  const [open, toggle] = useFold(item.key);
  const state = turnStateOf(item.turn, changes);
  const action = turnAction(state, session, item.turn, changes);
  const isDone = state.kind === "done";
  const points = { old: String(changes.before), new: String(changes.entry) };
  return (
    <section
      role="group"
      className="conversation-changes"
      data-undone={!isDone || undefined}
      aria-label="Files changed in this turn"
    >
      <div className="conversation-changes-line">
        <button type="button" className="conversation-changes-count" aria-expanded={open} onClick={toggle}>
          <Icon name="chevron" size={14} />
          <span>{changeCounts(changes)}</span>
          {!isDone && <span className="chip">undone</span>}
          {changes.shared && (
            <span className="chip" data-tone="amber" title="Someone else changed files during this turn">
              may include other changes
            </span>
          )}
        </button>
        <button type="button" className="small" onClick={() => show(diffPath(points))}>
          Show changes
        </button>
        {action === null ? (
          <button type="button" className="small" onClick={() => go("/history")}>
            Open History
          </button>
        ) : (
          <button type="button" className="small" onClick={() => onAction(action)}>
            <Icon name={isDone ? "undo" : "redo"} size={14} /> {isDone ? "Undo this turn" : "Redo this turn"}
          </button>
        )}
      </div>
      {open && <FileList points={points} />}
    </section>
  );
}

const MAX_FILES = 100;

function FileList({ points }: { points: { old: string; new: string } }) {
  const show = useShowBeside();
  const { value, problem, reload } = useResource<HistoryComparison>(
    `/v1/history/compare?old=${points.old}&new=${points.new}&limit=${MAX_FILES}`,
  );
  if (problem) return <Notice problem={problem} action={{ label: "Try again", run: reload }} />;
  if (value === null) return <p className="quiet conversation-changes-note">Loading…</p>;
  const notListed = value.total - value.files.length;
  return (
    <>
      <ul className="conversation-changes-list">
        {value.files.map((file) => {
          const to = diffPath(points, file.path);
          return (
            <li key={file.path}>
              <span
                className="chip"
                data-tone={file.word === "removed" ? "alarm" : file.word === "added" ? "leaf" : "amber"}
              >
                {file.word}
              </span>
              <a className="path" href={to} onClick={(event) => followLink(event, to, show)}>
                {visibleText(file.path)}
              </a>
              {(file.added !== null || file.removed !== null) && (
                <span className="line-counts">
                  <ins>+{file.added ?? 0}</ins> <del>−{file.removed ?? 0}</del>
                </span>
              )}
            </li>
          );
        })}
      </ul>
      {notListed > 0 && (
        <p className="quiet conversation-changes-note">and {countOf(notListed, "more file", "more files")}</p>
      )}
      {value.files.length === 0 && (
        <p className="quiet conversation-changes-note">The files are the same before and after this turn.</p>
      )}
    </>
  );
}
