import { memo, useMemo } from "react";
import type { CodeItem } from "../../client/api";
import { formatBytes } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { PlainText } from "../../ui/PlainText";
import { visibleText } from "../../ui/visibleText";
import {
  bytesOf,
  type CellRun,
  durationText,
  endText,
  pictureOf,
  type Shown,
  tableOf,
  valueText,
} from "./notebook.logic";
import { ResultTable } from "./ResultTable";

/** What a run has shown so far, and how it ended. */
export function CellOutput({ run, name }: { run: CellRun; name: string }) {
  const ended = run.end === null ? null : endText(run.end);
  const error = run.end?.error ?? null;
  return (
    <div className="notebook-output" role="group" aria-label={`Output of ${name}`} aria-busy={run.state === "running"}>
      {run.isFresh && <p className="quiet">The variables of earlier runs are gone.</p>}
      {run.shown.map((one, index) => (
        <ShownPart key={index} shown={one} />
      ))}
      {error !== null && (
        <div className="notebook-error">
          <p className="problem-text">
            {visibleText(error.name)}
            {error.message !== "" && `: ${visibleText(error.message)}`}
          </p>
          {error.traceback !== "" && <PlainText text={error.traceback} label="Traceback" />}
        </div>
      )}
      {ended !== null && <p className="problem-text">{ended}</p>}
      {run.problem !== null && (
        <p className="problem-text">
          {visibleText(run.problem.message)} {run.problem.hint}
        </p>
      )}
      {run.state === "ended" && run.end === null && run.problem === null && <p className="quiet">It was stopped.</p>}
      {run.end !== null && (
        <p className="quiet notebook-time" role="status">
          {`${ended === null && error === null ? "Done" : "Ended"} in ${durationText(run.end.duration)}`}
        </p>
      )}
    </div>
  );
}

const ShownPart = memo(({ shown }: { shown: Shown }) => {
  if (shown.kind === "item") return <Item item={shown.item} />;
  return (
    <div className="notebook-text" data-stream={shown.stream}>
      <PlainText text={shown.text} label={shown.stream === "stderr" ? "Errors" : "Output"} />
    </div>
  );
});

function Item({ item }: { item: CodeItem }) {
  const table = useMemo(() => tableOf(item), [item]);
  const picture = useMemo(() => pictureOf(item), [item]);
  if (table !== null) return <ResultTable table={table} />;
  if (picture !== null)
    return (
      <figure className="notebook-picture">
        <img src={picture} alt="A figure that the code has drawn" />
      </figure>
    );
  if (item.role === "file" || item.type === "bytes") return <FileItem item={item} />;
  return (
    <div className="notebook-value">
      <PlainText text={valueText(item)} label={item.role === "value" ? "Value" : "Shown"} />
    </div>
  );
}

function FileItem({ item }: { item: CodeItem }) {
  const name = item.name || "value.bin";
  const size = useMemo(() => bytesOf(item).length, [item]);
  function save() {
    const address = URL.createObjectURL(new Blob([bytesOf(item)]));
    const link = document.createElement("a");
    link.href = address;
    link.download = name.slice(name.lastIndexOf("/") + 1);
    link.click();
    URL.revokeObjectURL(address);
  }
  return (
    <p className="notebook-file">
      <span className="path">{visibleText(name)}</span>
      <span className="quiet">{formatBytes(size)}</span>
      <button type="button" className="small" onClick={save}>
        <Icon name="download" size={14} />
        Download
        <span className="visually-hidden"> {visibleText(name)}</span>
      </button>
    </p>
  );
}
