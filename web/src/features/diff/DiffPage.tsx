import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { EventPage, HistoryComparison, HistoryPage } from "../../client/api";
import { useAnswer } from "../../ui/answers";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { ALWAYS, turnStarts } from "../history/timeline.logic";
import { useTopic } from "../shell/live";
import { go, useRoute } from "../shell/route";
import { isTyping } from "../shell/shortcuts";
import { CommentDialog } from "./CommentDialog";
import { addressOf, choices, chosenFile, keepComments, keptComments, neighbour, readPoints, sameSpot, withComment, type Comment, type Points, type Spot } from "./diff.logic";
import { FileChanges } from "./FileChanges";
import { SendDialog } from "./SendDialog";
import type { Stepper } from "./Unified";
import { useNarrow } from "./narrow";
import "./diff.css";

const VIEW = "freehold.diff";

/** What differs between any two states of the files. */
export default function DiffPage() {
  const { query } = useRoute();
  const points = readPoints(query);
  // A long turn has several entries: before it is before the first of them.
  const turns = useAnswer<EventPage>(`/v1/timeline?before=${Number.MAX_SAFE_INTEGER}&kind=${ALWAYS}&limit=1000`);
  const known = points.old !== "before" || points.new === "now" || turns.value !== null || turns.problem !== null;
  const old = points.old === "before" ? (turnStarts(turns.value?.events ?? []).get(Number(points.new)) ?? "before") : points.old;
  const { value, problem, reload } = useAnswer<HistoryComparison>(known ? `/v1/history/compare?old=${old}&new=${points.new}&limit=1000` : null);
  const entries = useAnswer<HistoryPage>("/v1/history?limit=300");
  const [split, setSplit] = useState(() => localStorage.getItem(VIEW) !== "unified");
  const narrow = useNarrow();
  useTopic("timeline", { event: (data) => String((data as { kind?: unknown }).kind).startsWith("history.") && entries.reload() }, { durable: true });

  const pick = (next: Partial<Points>) => go(addressOf({ ...points, ...next }));
  const show = (beside: boolean) => {
    localStorage.setItem(VIEW, beside ? "split" : "unified");
    setSplit(beside);
  };
  return (
    <div className="diff-page">
      <header className="diff-head">
        <button className="plain-button" onClick={() => go("/history")} aria-label="Back to the history">
          <Icon name="back" />
        </button>
        <h1>Changes</h1>
        <div className="diff-points">
          <Picker label="From" value={points.old} groups={choices(entries.value?.entries ?? [], "old", points.old)} onPick={(old) => pick({ old })} />
          <span aria-hidden="true" className="quiet">
            →
          </span>
          <Picker label="To" value={points.new} groups={choices(entries.value?.entries ?? [], "new", points.new)} onPick={(to) => pick({ new: to })} />
        </div>
        {!narrow && (
          <div className="tabs" role="group" aria-label="How to show changes">
            <button aria-pressed={split} onClick={() => show(true)}>
              Side by side
            </button>
            <button aria-pressed={!split} onClick={() => show(false)}>
              Unified
            </button>
          </div>
        )}
      </header>
      {problem && (
        <div className="diff-note">
          <Notice problem={problem} action={{ label: "Try again", run: reload }} />
        </div>
      )}
      {value === null && problem === null && <p className="loading quiet">Comparing…</p>}
      {value !== null && <Changes key={`${value.old?.id ?? 0}..${value.new.id}`} comparison={value} points={points} split={split && !narrow} />}
    </div>
  );
}

function Picker({ label, value, groups, onPick }: { label: string; value: string; groups: ReturnType<typeof choices>; onPick: (value: string) => void }) {
  return (
    <label className="diff-point">
      <span className="quiet">{label}</span>
      <select aria-label={label} value={value} onChange={(event) => onPick(event.target.value)}>
        {groups.map(({ group, choices: offered }) => {
          const options = offered.map((one) => (
            <option key={one.value} value={one.value}>
              {one.label}
            </option>
          ));
          return group === "" ? options : <optgroup key={group} label={group}>{options}</optgroup>;
        })}
      </select>
    </label>
  );
}

function Changes({ comparison, points, split }: { comparison: HistoryComparison; points: Points; split: boolean }) {
  const { query } = useRoute();
  const { files, total } = comparison;
  const file = chosenFile(files, query.get("file"));
  const name = `${comparison.old?.id ?? 0}..${comparison.new.id}`;
  const [comments, setComments] = useState<readonly Comment[]>(() => keptComments(name));
  const [spot, setSpot] = useState<Spot | null>(null);
  const [sending, setSending] = useState(false);
  const stepper = useRef<Stepper>(null);
  const toasts = useToasts();
  useEffect(() => keepComments(name, comments), [name, comments]);
  const here = useMemo(() => comments.filter((one) => one.path === file?.path), [comments, file]);
  const choose = useCallback((path: string) => go(addressOf(points, path), { replace: true }), [points]);

  const step = useCallback(
    (direction: 1 | -1) => {
      if (stepper.current?.step(direction)) return;
      const next = file === null ? null : neighbour(files, file.path, direction);
      if (next !== null) choose(next.path);
    },
    [file, files, choose],
  );
  const keys = useRef(step);
  useEffect(() => {
    keys.current = step;
  });
  useEffect(() => {
    function pressed(event: KeyboardEvent) {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null) return;
      const target = event.composedPath()[0] ?? null;
      const reading = event.target instanceof Element && event.target.closest("[data-keys='diff']") !== null;
      if (isTyping(target) && !reading) return;
      if (event.key !== "n" && event.key !== "p") return;
      event.preventDefault();
      keys.current(event.key === "n" ? 1 : -1);
    }
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);

  if (file === null) return <p className="empty diff-note">Nothing differs between these two states.</p>;
  return (
    <div className="diff-body">
      <aside className="diff-files" aria-label="Changed files">
        <p className="quiet diff-total">
          {total === 1 ? "1 file" : `${total.toLocaleString()} files`} <Counts added={sum(files, "added")} removed={sum(files, "removed")} />
        </p>
        <ul>
          {files.map((one) => (
            <li key={one.path}>
              <button aria-current={one === file ? "true" : undefined} onClick={() => choose(one.path)} title={one.path}>
                <span className="diff-mark" data-word={one.word} aria-label={one.word}>
                  {MARKS[one.word]}
                </span>
                <span className="diff-name">
                  <bdi>{one.path}</bdi>
                </span>
                {comments.some((said) => said.path === one.path) && <span className="dot" role="img" aria-label="has comments" />}
                <Counts added={one.added} removed={one.removed} />
              </button>
            </li>
          ))}
        </ul>
        {total > files.length && <p className="quiet diff-total">and {(total - files.length).toLocaleString()} more that are not listed</p>}
      </aside>
      <section className="diff-file" aria-label={file.path}>
        <header className="diff-file-head">
          <h2 className="path">{file.path}</h2>
          <span className="chip" data-tone={TONES[file.word]}>
            {file.word}
          </span>
          <div className="diff-steps">
            <button className="plain-button" onClick={() => step(-1)} aria-label="Previous change" title="Previous change (p)">
              <Icon name="back" size={18} />
            </button>
            <button className="plain-button next" onClick={() => step(1)} aria-label="Next change" title="Next change (n)">
              <Icon name="chevron" size={18} />
            </button>
          </div>
        </header>
        <div className="diff-content">
          <FileChanges ref={stepper} file={file} comparison={comparison} split={split} comments={here} onComment={setSpot} />
        </div>
      </section>
      {comments.length > 0 && (
        <div className="diff-send" role="status">
          <span>{comments.length === 1 ? "1 comment" : `${comments.length} comments`}</span>
          <button className="small" onClick={() => setComments([])}>
            Discard
          </button>
          <button className="small primary" onClick={() => setSending(true)}>
            Send to an agent…
          </button>
        </div>
      )}
      {spot && (
        <CommentDialog
          spot={spot}
          said={comments.find((one) => sameSpot(one, spot))?.text ?? ""}
          onClose={() => setSpot(null)}
          onSay={(comment) => setComments((held) => withComment(held, comment))}
        />
      )}
      {sending && (
        <SendDialog
          comments={comments}
          session={comparison.new.who["session"] ?? null}
          onClose={() => setSending(false)}
          onSent={(session) => {
            keepComments(name, []);
            toasts.done("Sent to the agent");
            go(`/sessions?id=${encodeURIComponent(session)}`);
          }}
        />
      )}
    </div>
  );
}

const MARKS = { added: "+", changed: "•", removed: "−" } as const;
const TONES = { added: "leaf", changed: "amber", removed: "alarm" } as const;

function sum(files: HistoryComparison["files"], which: "added" | "removed"): number {
  return files.reduce((all, file) => all + (file[which] ?? 0), 0);
}

function Counts({ added, removed }: { added: number | null; removed: number | null }) {
  if (!added && !removed) return null;
  return (
    <span className="lines">
      {added ? <ins>+{added.toLocaleString()}</ins> : null} {removed ? <del>−{removed.toLocaleString()}</del> : null}
    </span>
  );
}
