import { useMemo } from "react";
import { shortLine } from "../../ui/plainText.logic";
import { visibleText } from "../../ui/visibleText";
import { type DiffLine, diffLines } from "./history.logic";
import "./diff-table.css";

/** A unified diff as a table of lines. Everything in it is plain text. */
export function UnifiedDiffTable({ text }: { text: string }) {
  return <DiffTable {...useMemo(() => diffLines(text), [text])} />;
}

export function DiffTable({ lines, more }: { lines: readonly DiffLine[]; more: number }) {
  if (lines.length === 0) return null;
  return (
    <div className="diff-table" tabIndex={0} role="region" aria-label="Changed lines">
      <table>
        <tbody>
          {lines.map((line, index) => (
            <tr key={index} data-kind={line.kind}>
              <td className="diff-table-number">{line.old}</td>
              <td className="diff-table-number">{line.new}</td>
              <td className="diff-table-sign" aria-label={line.kind}>
                {line.kind === "added" ? "+" : line.kind === "removed" ? "−" : ""}
              </td>
              <td className="diff-table-text">{visibleText(shortLine(line.text))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {more > 0 && <p className="quiet">{more} more lines are not shown.</p>}
    </div>
  );
}
