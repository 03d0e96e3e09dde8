import { useMemo } from "react";
import { diffLines, type DiffLine } from "./history.logic";

/** A unified diff as a table of lines; everything in it is text. */
export function Diff({ text }: { text: string }) {
  return <DiffTable {...useMemo(() => diffLines(text), [text])} />;
}

export function DiffTable({ lines, more }: { lines: readonly DiffLine[]; more: number }) {
  if (lines.length === 0) return null;
  return (
    <div className="diff" tabIndex={0} role="region" aria-label="Changed lines">
      <table>
        <tbody>
          {lines.map((line, index) => (
            <tr key={index} data-kind={line.kind}>
              <td className="number">{line.old}</td>
              <td className="number">{line.new}</td>
              <td className="sign" aria-label={line.kind}>
                {line.kind === "added" ? "+" : line.kind === "removed" ? "−" : ""}
              </td>
              <td className="text">{line.text}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {more > 0 && <p className="quiet">{more} more lines are not shown.</p>}
    </div>
  );
}
