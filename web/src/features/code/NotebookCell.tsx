import { ConfirmButton } from "../../ui/ConfirmButton";
import { Icon } from "../../ui/Icon";
import { lazyComponent } from "../../ui/lazyComponent";
import { CellOutput } from "./CellOutput";
import type { Cell, Language } from "./notebook.logic";

const NotebookEditor = lazyComponent(() => import("./NotebookEditor"));

interface NotebookCellProps {
  cell: Cell;
  title: string;
  language: Language;
  /** Grows when the editor shall have the focus. */
  focusRequests: number;
  isFirst: boolean;
  isLast: boolean;
  onChange: (code: string) => void;
  onRun: () => void;
  onRunAndGoOn: () => void;
  onMove: (by: -1 | 1) => void;
  onRemove: () => void;
}

/** One cell: its code, what to do with it, and what its last run has shown. */
export function NotebookCell(props: NotebookCellProps) {
  const { cell, title, language, isFirst, isLast } = props;
  const { run } = cell;
  const isBusy = run !== null && run.state !== "ended";
  return (
    <li className="card notebook-cell" aria-label={title}>
      <div className="notebook-head">
        <h2 className="quiet">
          {title}
          {run !== null && <span className="chip">{`run ${run.number}`}</span>}
        </h2>
        <button type="button" className="small" disabled={isBusy || cell.code.trim() === ""} onClick={props.onRun}>
          {isBusy ? <span className="spinner" aria-hidden="true" /> : <Icon name="play" size={14} />}
          {run?.state === "waiting" ? "Waits" : isBusy ? "Runs" : "Run"}
          <span className="visually-hidden"> {title}</span>
        </button>
        <button
          type="button"
          className="plain-button"
          disabled={isFirst}
          aria-label={`Move ${title} up`}
          onClick={() => props.onMove(-1)}
        >
          <Icon name="up" size={16} />
        </button>
        <button
          type="button"
          className="plain-button"
          disabled={isLast}
          aria-label={`Move ${title} down`}
          onClick={() => props.onMove(1)}
        >
          <Icon name="down" size={16} />
        </button>
        <ConfirmButton
          className="plain-button"
          label={<Icon name="trash" size={16} />}
          confirmLabel="Delete"
          spoken={`Delete ${title}`}
          disabled={isBusy}
          onConfirm={props.onRemove}
        />
      </div>
      <NotebookEditor
        id={cell.id}
        code={cell.code}
        name={title}
        language={language}
        focusRequests={props.focusRequests}
        onChange={props.onChange}
        onRun={props.onRun}
        onRunAndGoOn={props.onRunAndGoOn}
      />
      {run !== null && <CellOutput run={run} name={title} />}
    </li>
  );
}
