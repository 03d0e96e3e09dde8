import { type KeyboardEvent, type Ref, useEffect, useImperativeHandle, useMemo, useRef, useState } from "react";
import type { ComparedFile } from "../../client/api";
import { LANGUAGE } from "../../language/translation";
import { countOf } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { shortLine } from "../../ui/plainText.logic";
import { visibleText } from "../../ui/visibleText";
import { wordOf } from "../../ui/words";
import type { ChangeStepper } from "../files/SideBySide";
import { diffLines, MORE_LINES, SHOWN_LINES } from "../history/history.logic";
import { type Comment, type CommentedLine, linesOf, type Row, rowsOf } from "./diff.logic";
import { ignoreWhitespace } from "./whitespace.logic";

interface UnifiedDiffProps {
  file: ComparedFile;
  /** Whether lines that differ in white space only are shown as the same. */
  ignoresSpace: boolean;
  comments: readonly Comment[];
  onComment: (line: CommentedLine) => void;
  /** Reads the whole new file. */
  readWhole: () => Promise<string | null>;
  ref: Ref<ChangeStepper>;
}

/** The changes of one file in one column. Unchanged lines are hidden until they are asked for. */
export function UnifiedDiff({ file, ignoresSpace, comments, onComment, readWhole, ref }: UnifiedDiffProps) {
  const [wanted, setWanted] = useState(SHOWN_LINES);
  const { lines, more } = useMemo(() => {
    const found = diffLines(file.text, wanted);
    return ignoresSpace ? { ...found, lines: ignoreWhitespace(found.lines) } : found;
  }, [file.text, wanted, ignoresSpace]);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [whole, setWhole] = useState<readonly string[] | null>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const position = useRef(-1);
  const rows = useMemo(() => rowsOf(lines, opened, whole, more), [lines, opened, whole, more]);
  const commentsByLine = useMemo(() => new Map(comments.map((one) => [`${one.side} ${one.line}`, one])), [comments]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another file starts at its first change
  useEffect(() => {
    position.current = -1;
  }, [file]);

  useImperativeHandle(
    ref,
    () => ({
      step(direction) {
        const changes = body.current?.querySelectorAll<HTMLElement>("tr[data-change]") ?? [];
        const next = position.current < 0 && direction === -1 ? changes.length - 1 : position.current + direction;
        const row = changes[next];
        if (row === undefined) return false;
        position.current = next;
        row.scrollIntoView({ block: "center" });
        row.querySelector<HTMLElement>("button")?.focus({ preventScroll: true });
        return true;
      },
    }),
    [],
  );

  async function open(key: string) {
    if (whole === null) {
      const found = await readWhole();
      if (found === null) return;
      setWhole(linesOf(found));
    }
    setOpened((held) => new Set([...held, key]));
  }

  function move(event: KeyboardEvent) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const all = [...(body.current?.querySelectorAll<HTMLElement>("button.diff-line-number") ?? [])];
    const here = all.indexOf(event.target as HTMLElement);
    if (here < 0) return;
    event.preventDefault();
    all[here + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  }

  if (more === 0 && !lines.some((line) => line.kind === "added" || line.kind === "removed"))
    return <p className="empty diff-note">Only white space changed.</p>;
  return (
    <div className="diff-lines" role="region" aria-label={`Changes of ${file.path}`} tabIndex={0}>
      <table>
        <tbody ref={body} onKeyDown={move}>
          {rows.map((row) =>
            row.kind === "gap" ? (
              <tr key={row.key} className="diff-gap">
                <td colSpan={4}>
                  <button onClick={() => void open(row.key)}>
                    {row.count === null ? "Show the rest of the file" : `Show ${countOf(row.count, "unchanged line")}`}
                  </button>
                </td>
              </tr>
            ) : (
              <DiffRow
                key={row.key}
                row={row}
                path={file.path}
                comment={commentsByLine.get(lineKey(row))}
                onComment={onComment}
              />
            ),
          )}
        </tbody>
      </table>
      {more > 0 && (
        <p className="diff-more">
          <button type="button" className="small" onClick={() => setWanted(wanted + MORE_LINES)}>
            Show {Math.min(more, MORE_LINES).toLocaleString(LANGUAGE)} more lines of {more.toLocaleString(LANGUAGE)}
          </button>
        </p>
      )}
    </div>
  );
}

const lineKey = (row: Exclude<Row, { kind: "gap" }>): string =>
  row.new === null ? `old ${row.old}` : `new ${row.new}`;

function DiffRow({
  row,
  path,
  comment,
  onComment,
}: {
  row: Exclude<Row, { kind: "gap" }>;
  path: string;
  comment: Comment | undefined;
  onComment: (line: CommentedLine) => void;
}) {
  const side = row.new === null ? "old" : "new";
  const line = row.new ?? row.old;
  const addComment = line !== null ? () => onComment({ path, side, line, quote: row.text }) : null;
  return (
    <>
      <tr data-kind={row.kind} data-change={row.change ?? undefined}>
        <td className="diff-number">{row.old}</td>
        <td className="diff-number">
          {addComment === null ? null : (
            <button
              className="diff-line-number"
              onClick={addComment}
              aria-label={`Comment on ${side === "old" ? "removed line" : "line"} ${line}`}
              title="Comment on this line"
            >
              <span className="diff-line-plus" aria-hidden="true">
                <Icon name="plus" size={12} />
              </span>
              {row.new}
            </button>
          )}
        </td>
        <td className="diff-sign" aria-hidden="true">
          {row.kind === "added" ? "+" : row.kind === "removed" ? "−" : ""}
        </td>
        <td className="diff-text">
          {(row.kind === "added" || row.kind === "removed") && (
            <span className="visually-hidden">{wordOf(row.kind)}: </span>
          )}
          {visibleText(shortLine(row.text))}
        </td>
      </tr>
      {comment && addComment && (
        <tr className="diff-comment-row">
          <td colSpan={4}>
            <button className="diff-comment" onClick={addComment}>
              {comment.text}
            </button>
          </td>
        </tr>
      )}
    </>
  );
}
