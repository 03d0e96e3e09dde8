import { useState } from "react";
import { countOf } from "../../ui/format";
import { shortLine } from "../../ui/plainText.logic";
import { visibleText } from "../../ui/visibleText";
import { cellText, type Table } from "./notebook.logic";

const FIRST_ROWS = 50;
const MAX_CELL = 200;

const show = (value: unknown) => visibleText(shortLine(cellText(value), MAX_CELL));

/** A data frame. The first rows are drawn; the others when they are asked for. */
export function ResultTable({ table }: { table: Table }) {
  const [isWhole, setIsWhole] = useState(false);
  const rows = isWhole ? table.rows : table.rows.slice(0, FIRST_ROWS);
  const hasIndex = table.index.length > 0;
  return (
    <div className="notebook-table">
      <div className="notebook-scroll" role="group" aria-label="Table" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {hasIndex && (
                <th scope="col">
                  <span className="visually-hidden">Index</span>
                </th>
              )}
              {table.columns.map((column, at) => (
                <th key={at} scope="col">
                  {show(column)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={at}>
                {hasIndex && <th scope="row">{show(table.index[at])}</th>}
                {row.map((value, column) => (
                  <td key={column} data-number={typeof value === "number"}>
                    {value === null ? <span className="quiet">null</span> : show(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className="quiet">
        {rows.length < table.total ? `${rows.length} of ${countOf(table.total, "row")}` : countOf(table.total, "row")}
        {rows.length < table.rows.length && (
          <button type="button" className="text-button" onClick={() => setIsWhole(true)}>
            {`Show ${table.rows.length}`}
          </button>
        )}
      </p>
    </div>
  );
}
