import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { HistoryComparison } from "../../client/api";
import { countOf } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { isDialogOpen, isTyping } from "../../ui/keyboard";
import { PlainTextBoundary } from "../../ui/PlainTextBoundary";
import { go, sessionPath, useRoute } from "../../ui/route";
import { useToasts } from "../../ui/Toasts";
import { CommentDialog } from "./CommentDialog";
import {
  type Comment,
  type CommentedLine,
  chosenFile,
  type DiffPoints,
  diffPath,
  isSameLine,
  nextFile,
  readComments,
  storeComments,
  withComment,
} from "./diff.logic";
import { FileChanges } from "./FileChanges";
import { SendCommentsDialog } from "./SendCommentsDialog";
import type { ChangeStepper } from "./UnifiedDiff";

interface ComparisonViewProps {
  comparison: HistoryComparison;
  points: DiffPoints;
  split: boolean;
}

/** The changed files of a comparison, the changes of one of them, and the comments on them. */
export function ComparisonView({ comparison, points, split }: ComparisonViewProps) {
  const { query } = useRoute();
  const { files, total } = comparison;
  const file = chosenFile(files, query.get("file"));
  const name = `${comparison.old?.id ?? 0}..${comparison.new.id}`;
  const [comments, setComments] = useState<readonly Comment[]>(() => readComments(name));
  const [line, setLine] = useState<CommentedLine | null>(null);
  const [sending, setSending] = useState(false);
  const stepper = useRef<ChangeStepper>(null);
  const toasts = useToasts();
  useEffect(() => storeComments(name, comments), [name, comments]);
  const fileComments = useMemo(() => comments.filter((one) => one.path === file?.path), [comments, file]);
  const choose = useCallback((path: string) => go(diffPath(points, path), { replace: true }), [points]);
  const step = (direction: 1 | -1) => {
    if (stepper.current?.step(direction)) return;
    const next = file === null ? null : nextFile(files, file.path, direction);
    if (next !== null) choose(next.path);
  };
  useStepKeys(step);

  if (file === null) return <p className="empty diff-note">These two states are the same.</p>;
  return (
    <div className="diff-body">
      <FileList files={files} total={total} chosen={file.path} comments={comments} onChoose={choose} />
      <section className="diff-file" aria-label={file.path}>
        <header className="diff-file-head">
          <h2 className="path">{file.path}</h2>
          <span className="chip" data-tone={TONES[file.word]}>
            {file.word}
          </span>
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
              comments={fileComments}
              onComment={setLine}
            />
          </PlainTextBoundary>
        </div>
      </section>
      {comments.length > 0 && (
        <div className="diff-send" role="status">
          <span>{countOf(comments.length, "comment")}</span>
          <button type="button" className="small" onClick={() => setComments([])}>
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
          session={comparison.new.who["session"] ?? null}
          onClose={() => setSending(false)}
          onSent={(session) => {
            storeComments(name, []);
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
const TONES = { added: "leaf", changed: "amber", removed: "alarm" } as const;

interface FileListProps {
  files: HistoryComparison["files"];
  total: number;
  chosen: string;
  comments: readonly Comment[];
  onChoose: (path: string) => void;
}

function FileList({ files, total, chosen, comments, onChoose }: FileListProps) {
  const sum = (which: "added" | "removed") => files.reduce((all, file) => all + (file[which] ?? 0), 0);
  return (
    <aside className="diff-files" aria-label="Changed files">
      <p className="quiet diff-total">
        {countOf(total, "file")} <LineCounts added={sum("added")} removed={sum("removed")} />
      </p>
      <ul>
        {files.map((file) => (
          <li key={file.path}>
            <button
              type="button"
              aria-current={file.path === chosen ? "true" : undefined}
              onClick={() => onChoose(file.path)}
              title={file.path}
            >
              <span className="diff-mark" data-word={file.word} role="img" aria-label={file.word}>
                {SIGNS[file.word]}
              </span>
              <span className="diff-name">
                <bdi>{file.path}</bdi>
              </span>
              {comments.some((comment) => comment.path === file.path) && (
                <span className="dot" role="img" aria-label="has comments" />
              )}
              <LineCounts added={file.added} removed={file.removed} />
            </button>
          </li>
        ))}
      </ul>
      {total > files.length && (
        <p className="quiet diff-total">and {countOf(total - files.length, "more file", "more files")}, not listed</p>
      )}
    </aside>
  );
}

function LineCounts({ added, removed }: { added: number | null; removed: number | null }) {
  if (!added && !removed) return null;
  return (
    <span className="line-counts">
      {added ? <ins>+{added.toLocaleString("en")}</ins> : null}{" "}
      {removed ? <del>−{removed.toLocaleString("en")}</del> : null}
    </span>
  );
}
