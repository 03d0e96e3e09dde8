import { useEffect, useImperativeHandle, useMemo, useRef, useState, type KeyboardEvent, type Ref } from "react";
import type { ComparedFile } from "../../client/api";
import { Icon } from "../../ui/Icon";
import { diffLines } from "../history/history.logic";
import { linesOf, rowsOf, type Comment, type Row, type Spot } from "./diff.logic";

export interface Stepper {
  /** Goes to the next change in a direction; false when there is none. */
  step: (direction: 1 | -1) => boolean;
}

interface UnifiedProps {
  file: ComparedFile;
  comments: readonly Comment[];
  onComment: (spot: Spot) => void;
  /** The whole of the file as it is on the new side. */
  readWhole: () => Promise<string | null>;
  ref: Ref<Stepper>;
}

/** One file's changes as one column. What was not changed is folded, and opened where it is asked for. */
export function Unified({ file, comments, onComment, readWhole, ref }: UnifiedProps) {
  const { lines, more } = useMemo(() => diffLines(file.text), [file.text]);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [whole, setWhole] = useState<readonly string[] | null>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const at = useRef(-1);
  const rows = useMemo(() => rowsOf(lines, opened, whole), [lines, opened, whole]);
  const spots = useMemo(() => new Map(comments.map((one) => [`${one.side} ${one.line}`, one])), [comments]);
  useEffect(() => {
    at.current = -1;
  }, [file]);

  useImperativeHandle(
    ref,
    () => ({
      step(direction) {
        const marks = body.current?.querySelectorAll<HTMLElement>("tr[data-change]") ?? [];
        const next = at.current < 0 && direction === -1 ? marks.length - 1 : at.current + direction;
        const row = marks[next];
        if (row === undefined) return false;
        at.current = next;
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
    const all = [...(body.current?.querySelectorAll<HTMLElement>("button.line-number") ?? [])];
    const here = all.indexOf(event.target as HTMLElement);
    if (here < 0) return;
    event.preventDefault();
    all[here + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  }

  return (
    <div className="diff-lines" role="region" aria-label={`Changes of ${file.path}`} tabIndex={0}>
      <table>
        <tbody ref={body} onKeyDown={move}>
          {rows.map((row) =>
            row.kind === "gap" ? (
              <tr key={row.key} className="gap">
                <td colSpan={4}>
                  <button onClick={() => void open(row.key)}>{row.count === null ? "Show the rest of the file" : `${row.count} unchanged ${row.count === 1 ? "line" : "lines"}`}</button>
                </td>
              </tr>
            ) : (
              <Line key={row.key} row={row} path={file.path} comment={spots.get(spotOf(row))} onComment={onComment} />
            ),
          )}
        </tbody>
      </table>
      {more > 0 && <p className="quiet diff-more">{more.toLocaleString()} more lines are not shown.</p>}
    </div>
  );
}

const spotOf = (row: Exclude<Row, { kind: "gap" }>): string => (row.new === null ? `old ${row.old}` : `new ${row.new}`);

function Line({ row, path, comment, onComment }: { row: Exclude<Row, { kind: "gap" }>; path: string; comment: Comment | undefined; onComment: (spot: Spot) => void }) {
  const side = row.new === null ? "old" : "new";
  const line = row.new ?? row.old;
  const comments = line !== null ? () => onComment({ path, side, line, quote: row.text }) : null;
  return (
    <>
      <tr data-kind={row.kind} data-change={row.change ?? undefined}>
        <td className="number">{row.old}</td>
        <td className="number">
          {comments === null ? null : (
            <button className="line-number" onClick={comments} aria-label={`Comment on ${side === "old" ? "removed line" : "line"} ${line}`} title="Comment on this line">
              <span className="line-plus" aria-hidden="true">
                <Icon name="plus" size={12} />
              </span>
              {row.new}
            </button>
          )}
        </td>
        <td className="sign" aria-hidden="true">
          {row.kind === "added" ? "+" : row.kind === "removed" ? "−" : ""}
        </td>
        <td className="text">
          {(row.kind === "added" || row.kind === "removed") && <span className="unseen">{row.kind}: </span>}
          {row.text}
        </td>
      </tr>
      {comment && comments && (
        <tr className="comment-row">
          <td colSpan={4}>
            <button className="comment" onClick={comments}>
              {comment.text}
            </button>
          </td>
        </tr>
      )}
    </>
  );
}
