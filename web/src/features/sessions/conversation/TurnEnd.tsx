import type { HistoryComparison } from "../../../client/api";
import { useAnswer } from "../../../ui/answers";
import { Icon } from "../../../ui/Icon";
import { Notice } from "../../../ui/Notice";
import { unhidden } from "../../../ui/unhidden";
import { addressOf } from "../../diff/diff.logic";
import { countsOf } from "../../history/history.logic";
import { go } from "../../shell/route";
import { useFold, useShared } from "./context";
import { endingOf, type Changes, type Item } from "./transcript.logic";
import { actionOf, hasChanged } from "./turns.logic";

type Ended = Extract<Item, { kind: "ended" }>;

/** How a turn ended, what it cost, and what it did to the files, with the way back. */
export function TurnEnd({ item }: { item: Ended }) {
  const ending = endingOf(item.reason);
  const facts = (
    <span className="turn-facts">
      {ending && <span data-tone={item.reason === "error" ? "alarm" : "amber"}>{ending}</span>}
      {!hasChanged(item.changes) && <span>{item.changes === null ? "what it did to files is not known" : "no file changed"}</span>}
      <span>{item.usage}</span>
    </span>
  );
  if (!hasChanged(item.changes)) return <footer className="turn-end">{facts}</footer>;
  return (
    <footer className="turn-end">
      <TurnFiles item={item} changes={item.changes} />
      {facts}
    </footer>
  );
}

function TurnFiles({ item, changes }: { item: Ended; changes: Changes }) {
  const { session, fateOf, act } = useShared();
  const [open, fold] = useFold(item.key);
  const fate = fateOf(item.turn, changes);
  const action = actionOf(fate, session, item.turn, changes);
  const points = { old: String(changes.before), new: String(changes.entry) };
  return (
    <section role="group" className="turn-files" data-undone={fate.kind !== "done" || undefined} aria-label="Files of this turn">
      <div className="turn-line">
        <button className="turn-count" aria-expanded={open} onClick={fold}>
          <Icon name="chevron" size={14} />
          <span>{countsOf(changes)}</span>
          {fate.kind !== "done" && <span className="chip">undone</span>}
          {changes.shared && <span className="chip" data-tone="amber">others worked at the same time</span>}
        </button>
        <button className="small" onClick={() => go(addressOf(points))}>
          See the diff
        </button>
        {action === null ? (
          <button className="small" onClick={() => go("/history")}>
            In history
          </button>
        ) : (
          <button className="small" onClick={() => act(action)}>
            <Icon name={fate.kind === "done" ? "undo" : "redo"} size={14} /> {fate.kind === "done" ? "Undo this turn" : "Redo this turn"}
          </button>
        )}
      </div>
      {open && <Files changes={changes} />}
    </section>
  );
}

function Files({ changes }: { changes: Changes }) {
  const points = { old: String(changes.before), new: String(changes.entry) };
  const { value, problem, reload } = useAnswer<HistoryComparison>(`/v1/history/compare?old=${points.old}&new=${points.new}&limit=100`);
  if (problem) return <Notice problem={problem} action={{ label: "Try again", run: reload }} />;
  if (value === null) return <p className="quiet turn-note">Reading…</p>;
  return (
    <>
      <ul className="turn-list">
        {value.files.map((file) => (
          <li key={file.path}>
            <span className="chip" data-tone={file.word === "removed" ? "alarm" : file.word === "added" ? "leaf" : "amber"}>
              {file.word}
            </span>
            <a
              className="path"
              href={addressOf(points, file.path)}
              onClick={(event) => {
                if (event.metaKey || event.ctrlKey || event.shiftKey) return;
                event.preventDefault();
                go(addressOf(points, file.path));
              }}
            >
              {unhidden(file.path)}
            </a>
            {(file.added !== null || file.removed !== null) && (
              <span className="lines">
                <ins>+{file.added ?? 0}</ins> <del>−{file.removed ?? 0}</del>
              </span>
            )}
          </li>
        ))}
      </ul>
      {value.total > value.files.length && <p className="quiet turn-note">and {value.total - value.files.length} more</p>}
      {value.files.length === 0 && <p className="quiet turn-note">Nothing differs between before and after.</p>}
    </>
  );
}
