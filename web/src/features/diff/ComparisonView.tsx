import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { HistoryComparison } from "../../client/api";
import { LANGUAGE } from "../../language/translation";
import { countOf } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { isDialogOpen, isTyping } from "../../ui/keyboard";
import { PlainTextBoundary } from "../../ui/PlainTextBoundary";
import { sessionPath, useGo, useRoute } from "../../ui/route";
import { useToasts } from "../../ui/Toasts";
import { wordOf } from "../../ui/words";
import type { ChangeStepper } from "../files/SideBySide";
import { CommentDialog } from "./CommentDialog";
import {
  type Comment,
  type CommentedLine,
  chosenFile,
  type DiffPoints,
  diffPath,
  isSameLine,
  nextFile,
  nextUnapproved,
  readApproved,
  readComments,
  storeApproved,
  storeComments,
  withComment,
} from "./diff.logic";
import { FileChanges } from "./FileChanges";
import { fileRows, inTreeOrder } from "./fileTree.logic";
import { SendCommentsDialog } from "./SendCommentsDialog";

interface ComparisonViewProps {
  comparison: HistoryComparison;
  points: DiffPoints;
  split: boolean;
  ignoresSpace: boolean;
  /** Reads another page of the files. */
  loadMore: () => Promise<void>;
}

/** The changed files of a comparison, the changes of one of them, and the comments on them. */
export function ComparisonView({ comparison, points, split, ignoresSpace, loadMore }: ComparisonViewProps) {
  const { query } = useRoute();
  const go = useGo();
  const { total } = comparison;
  const files = useMemo(() => inTreeOrder(comparison.files), [comparison.files]);
  const file = chosenFile(files, query.get("file"));
  const name = `${comparison.old?.id ?? 0}..${comparison.new.id}`;
  const [comments, setComments] = useState<readonly Comment[]>(() => readComments(name));
  const [approved, setApproved] = useState<readonly string[]>(() => readApproved(name));
  const [line, setLine] = useState<CommentedLine | null>(null);
  const [sending, setSending] = useState(false);
  const stepper = useRef<ChangeStepper>(null);
  const toasts = useToasts();
  useEffect(() => storeComments(name, comments), [name, comments]);
  useEffect(() => storeApproved(name, approved), [name, approved]);
  const fileComments = useMemo(() => comments.filter((one) => one.path === file?.path), [comments, file]);
  const choose = useCallback((path: string) => go(diffPath(points, path), { replace: true }), [points, go]);
  const step = (direction: 1 | -1) => {
    if (stepper.current?.step(direction)) return;
    const next = file === null ? null : nextFile(files, file.path, direction);
    if (next !== null) choose(next.path);
  };
  useStepKeys(step);
  function approve(path: string) {
    const held = approved.includes(path);
    const now = held ? approved.filter((one) => one !== path) : [...approved, path];
    setApproved(now);
    const next = held ? null : nextUnapproved(files, path, now);
    if (next !== null) choose(next.path);
  }

  if (file === null) return <p className="empty diff-note">These two states are the same.</p>;
  return (
    <div className="diff-body">
      <FileList
        files={files}
        total={total}
        chosen={file.path}
        comments={comments}
        approved={approved}
        onChoose={choose}
        loadMore={loadMore}
      />
      <section className="diff-file" aria-label={file.path}>
        <header className="diff-file-head">
          <h2 className="path">
            <bdi>{file.path}</bdi>
          </h2>
          <span className="chip" data-tone={TONES[file.word]}>
            {wordOf(file.word)}
          </span>
          <button
            type="button"
            className="small"
            aria-pressed={approved.includes(file.path)}
            onClick={() => approve(file.path)}
          >
            <Icon name="check" size={16} /> {approved.includes(file.path) ? "Approved" : "Approve"}
          </button>
          <div className="diff-steps">
            <button
              type="button"
              className="plain-button"
              onClick={() => step(-1)}
              aria-label="Previous change"
              title="Previous change (p)"
            >
              <Icon name="back" size={18} />
            </button>
            <button
              type="button"
              className="plain-button"
              onClick={() => step(1)}
              aria-label="Next change"
              title="Next change (n)"
            >
              <Icon name="chevron" size={18} />
            </button>
          </div>
        </header>
        <div className="diff-content">
          <PlainTextBoundary key={file.path} text={file.text}>
            <FileChanges
              ref={stepper}
              file={file}
              comparison={comparison}
              split={split}
              ignoresSpace={ignoresSpace}
              comments={fileComments}
              onComment={setLine}
            />
          </PlainTextBoundary>
        </div>
      </section>
      {comments.length + approved.length > 0 && (
        <div className="diff-send" role="status">
          <span>
            {[
              comments.length > 0 && countOf(comments.length, "comment"),
              approved.length > 0 && `${approved.length} of ${countOf(total, "file")} approved`,
            ]
              .filter(Boolean)
              .join(", ")}
          </span>
          <button
            type="button"
            className="small"
            onClick={() => {
              setComments([]);
              setApproved([]);
            }}
          >
            Discard
          </button>
          <button type="button" className="small primary" onClick={() => setSending(true)}>
            Send to an agent…
          </button>
        </div>
      )}
      {line && (
        <CommentDialog
          line={line}
          current={comments.find((one) => isSameLine(one, line))?.text ?? ""}
          onClose={() => setLine(null)}
          onSave={(comment) => setComments((before) => withComment(before, comment))}
        />
      )}
      {sending && (
        <SendCommentsDialog
          comments={comments}
          approved={approved}
          session={comparison.new.who["session"] ?? null}
          onClose={() => setSending(false)}
          onSent={(session) => {
            storeComments(name, []);
            storeApproved(name, []);
            toasts.done("Sent to the agent");
            go(sessionPath(session));
          }}
        />
      )}
    </div>
  );
}

/** `n` and `p` go to the next and previous change. */
function useStepKeys(step: (direction: 1 | -1) => void): void {
  const latest = useRef(step);
  useEffect(() => {
    latest.current = step;
  });
  useEffect(() => {
    function handle(event: KeyboardEvent) {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isDialogOpen()) return;
      if (event.key !== "n" && event.key !== "p") return;
      // The side-by-side view has the focus of an editor, but nothing is typed there.
      const isReading = event.target instanceof Element && event.target.closest("[data-keys='diff']") !== null;
      if (isTyping(event.composedPath()[0] ?? null) && !isReading) return;
      event.preventDefault();
      latest.current(event.key === "n" ? 1 : -1);
    }
    window.addEventListener("keydown", handle);
    return () => window.removeEventListener("keydown", handle);
  }, []);
}

const SIGNS = { added: "+", changed: "•", removed: "−" } as const;
/** Deeper folders are not moved further to the right. */
const MAX_DEPTH = 6;
const TONES = { added: "leaf", changed: "amber", removed: "alarm" } as const;

interface FileListProps {
  files: HistoryComparison["files"];
  total: number;
  chosen: string;
  comments: readonly Comment[];
  approved: readonly string[];
  onChoose: (path: string) => void;
  loadMore: () => Promise<void>;
}

function FileList({ files, total, chosen, comments, approved, onChoose, loadMore }: FileListProps) {
  const sum = (which: "added" | "removed") => files.reduce((all, file) => all + (file[which] ?? 0), 0);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo(() => fileRows(files, closed), [files, closed]);
  const toggle = (path: string) =>
    setClosed((held) => new Set(held.has(path) ? [...held].filter((one) => one !== path) : [...held, path]));
  return (
    <aside className="diff-files" aria-label="Changed files">
      <p className="quiet diff-total">
        {countOf(total, "file")} <LineCounts added={sum("added")} removed={sum("removed")} />
      </p>
      <ul>
        {rows.map((row) =>
          row.kind === "folder" ? (
            <li key={`${row.path}/`} data-depth={Math.min(row.depth, MAX_DEPTH)}>
              <button type="button" aria-expanded={row.isOpen} title={row.path} onClick={() => toggle(row.path)}>
                <Icon name={row.isOpen ? "down" : "chevron"} size={14} />
                <span className="diff-name">
                  <bdi>{row.name}</bdi>
                </span>
                {!row.isOpen && <span className="quiet">{countOf(row.files, "file")}</span>}
              </button>
            </li>
          ) : (
            <li key={row.file.path} data-depth={Math.min(row.depth, MAX_DEPTH)}>
              <FileButton
                file={row.file}
                name={row.name}
                isChosen={row.file.path === chosen}
                isApproved={approved.includes(row.file.path)}
                hasComments={comments.some((comment) => comment.path === row.file.path)}
                onChoose={onChoose}
              />
            </li>
          ),
        )}
      </ul>
      {total > files.length && <MoreFiles listed={files.length} total={total} loadMore={loadMore} />}
    </aside>
  );
}

/** The way to the files that are not listed yet. */
function MoreFiles({ listed, total, loadMore }: { listed: number; total: number; loadMore: () => Promise<void> }) {
  const [isLoading, setLoading] = useState(false);
  const toasts = useToasts();
  const load = () => {
    setLoading(true);
    void loadMore()
      .catch(toasts.failed)
      .finally(() => setLoading(false));
  };
  return (
    <p className="diff-total diff-more-files">
      <span className="quiet">
        {listed.toLocaleString(LANGUAGE)} of {countOf(total, "file")} listed
      </span>
      <button type="button" className="small" disabled={isLoading} onClick={load}>
        {isLoading ? "Loading…" : "List more files"}
      </button>
    </p>
  );
}

interface FileButtonProps {
  file: HistoryComparison["files"][number];
  name: string;
  isChosen: boolean;
  isApproved: boolean;
  hasComments: boolean;
  onChoose: (path: string) => void;
}

function FileButton({ file, name, isChosen, isApproved, hasComments, onChoose }: FileButtonProps) {
  return (
    <button
      type="button"
      aria-current={isChosen ? "true" : undefined}
      onClick={() => onChoose(file.path)}
      title={file.path}
    >
      <span className="diff-mark" data-word={file.word} role="img" aria-label={wordOf(file.word)}>
        {SIGNS[file.word]}
      </span>
      <span className="diff-name">
        <bdi>{name}</bdi>
      </span>
      {isApproved && (
        <span className="diff-approved" role="img" aria-label="approved">
          <Icon name="check" size={14} />
        </span>
      )}
      {hasComments && <span className="dot" role="img" aria-label="has comments" />}
      <LineCounts added={file.added} removed={file.removed} />
    </button>
  );
}

function LineCounts({ added, removed }: { added: number | null; removed: number | null }) {
  if (!added && !removed) return null;
  return (
    <span className="line-counts">
      {added ? <ins>+{added.toLocaleString(LANGUAGE)}</ins> : null}{" "}
      {removed ? <del>−{removed.toLocaleString(LANGUAGE)}</del> : null}
    </span>
  );
}
