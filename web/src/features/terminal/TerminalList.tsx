import type { TerminalInfo } from "../../client/api";
import { formatAge, secondsOf } from "../../ui/format";
import { shortLine } from "../../ui/plainText.logic";
import { useNow } from "../../ui/useNow";
import { visibleText } from "../../ui/visibleText";

interface TerminalListProps {
  rows: readonly TerminalInfo[];
  nameOf: (row: TerminalInfo, index: number) => string;
  /** The terminal during which the page was cut off; null when none was. */
  suspect: string | null;
  onOpen: (id: string) => void;
  onClose: (id: string) => void;
}

const MAX_COMMAND = 200;

/** All terminals without their screens. A terminal whose output harms the page can be closed here. */
export function TerminalList({ rows, nameOf, suspect, onOpen, onClose }: TerminalListProps) {
  const now = useNow();
  return (
    <section className="terminal-all" aria-label="All terminals">
      {suspect !== null && (
        <p className="notice" role="status">
          This page was cut off while a terminal was open. Close the terminal if its output was the cause.
        </p>
      )}
      <ul className="rows">
        {rows.map((row, index) => {
          const name = nameOf(row, index);
          return (
            <li key={row.id}>
              <div className="grow">
                <p className="row-title">
                  <strong>{name}</strong> {row.ended && <span className="chip">ended</span>}{" "}
                  {row.id === suspect && (
                    <span className="chip" data-tone="amber">
                      was open
                    </span>
                  )}
                </p>
                <p className="quiet">
                  <code>{visibleText(shortLine(row.command.join(" "), MAX_COMMAND))}</code> · opened{" "}
                  {formatAge(secondsOf(row.began), now)}
                </p>
              </div>
              <div className="answers">
                <button type="button" className="small" onClick={() => onOpen(row.id)} aria-label={`Open ${name}`}>
                  Open
                </button>
                <button
                  type="button"
                  className="small danger"
                  onClick={() => onClose(row.id)}
                  aria-label={`Close ${name}`}
                >
                  Close
                </button>
              </div>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
