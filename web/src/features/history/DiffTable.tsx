import { useMemo, useState } from "react";
import { LANGUAGE } from "../../language/translation";
import { shortLine } from "../../ui/plainText.logic";
import { visibleText } from "../../ui/visibleText";
import { type DiffLine, diffLines, MORE_LINES, SHOWN_LINES } from "./history.logic";
import "./diff-table.css";
import { wordOf } from "../../ui/words";

/** A unified diff as a table of lines. Everything in it is plain text. */
export function UnifiedDiffTable({ text }: { text: string }) {
  const [wanted, setWanted] = useState(SHOWN_LINES);
  const { lines, more } = useMemo(() => diffLines(text, wanted), [text, wanted]);
  return <DiffTable lines={lines} more={more} onMore={() => setWanted(wanted + MORE_LINES)} />;
}

interface DiffTableProps {
  lines: readonly DiffLine[];
  /** How many lines there are beside these. */
  more: number;
  onMore?: () => void;
  label?: string;
  /** Long lines are not shortened, and the table has no scroll bar of its own. */
  isWhole?: boolean;
  /** Shows the unchanged lines that are left out. */
  onGap?: () => void;
}

export function DiffTable({ lines, more, onMore, label = "Changed lines", isWhole = false, onGap }: DiffTableProps) {
  if (lines.length + more === 0) return null;
  return (
    <div className="diff-table" data-whole={isWhole || undefined} tabIndex={0} role="region" aria-label={label}>
      <table>
        <tbody>
          {lines.map((line, index) => (
            <tr key={index} data-kind={line.kind}>
              <td className="diff-table-number">{line.old}</td>
              <td className="diff-table-number">{line.new}</td>
              <td className="diff-table-sign" aria-label={wordOf(line.kind)}>
                {line.kind === "added" ? "+" : line.kind === "removed" ? "−" : ""}
              </td>
              <td className="diff-table-text">
                {line.kind === "hunk" && onGap !== undefined ? (
                  <button type="button" className="text-button diff-table-gap" onClick={onGap}>
                    Show {line.text}
                  </button>
                ) : (
                  visibleText(isWhole ? line.text : shortLine(line.text))
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {more > 0 && onMore !== undefined && (
        <button type="button" className="small" onClick={onMore}>
          Show {Math.min(more, MORE_LINES).toLocaleString(LANGUAGE)} more lines of {more.toLocaleString(LANGUAGE)}
        </button>
      )}
    </div>
  );
}
