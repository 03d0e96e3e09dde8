import { useState, useSyncExternalStore } from "react";
import { request, requestLines } from "../../client/http";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { Icon } from "../../ui/Icon";
import { useToasts } from "../../ui/Toasts";
import { NotebookCell } from "./NotebookCell";
import { Notebook } from "./notebook";
import { FILE_ACCESS, type FileAccess, LANGUAGES, type Language, packagesOf, type Settings } from "./notebook.logic";
import "./notebook.css";

/** One for the tab: code goes on while another page is shown. */
let opened: Notebook | null = null;
function openNotebook(): Notebook {
  opened ??= new Notebook({ request, lines: requestLines, code: localStorage, tab: sessionStorage });
  return opened;
}

/** Cells of code that share their variables, with what they wrote, drew and returned. */
export default function NotebookPage() {
  const notebook = openNotebook();
  const { settings, cells, context } = useSyncExternalStore(notebook.subscribe, notebook.state);
  const toasts = useToasts();
  /** The cell whose editor shall have the focus, and how often that was asked for. */
  const [focus, setFocus] = useState({ id: "", requests: 0 });
  const isRunning = cells.some((cell) => cell.run !== null && cell.run.state !== "ended");

  const attempt = (work: Promise<void>) => void work.catch(toasts.failed);
  const change = (changed: Partial<Settings>) => attempt(notebook.configure({ ...settings, ...changed }));
  const focusCell = (id: string) => setFocus(({ requests }) => ({ id, requests: requests + 1 }));

  return (
    <div className="column notebook">
      <header className="head">
        <h1>Code</h1>
        <p className="quiet">It runs in a sealed process of the computer. Variables stay until you reset them.</p>
      </header>
      <div className="notebook-settings" role="group" aria-label="Settings">
        <label>
          Language
          <select value={settings.language} onChange={(event) => change({ language: event.target.value as Language })}>
            {Object.entries(LANGUAGES).map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <label>
          Workspace
          <select value={settings.files} onChange={(event) => change({ files: event.target.value as FileAccess })}>
            {Object.entries(FILE_ACCESS).map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <label>
          Packages
          <input
            key={settings.packages.join()}
            defaultValue={settings.packages.join(", ")}
            maxLength={1000}
            autoCapitalize="off"
            autoComplete="off"
            spellCheck={false}
            onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
            onBlur={(event) => {
              const packages = packagesOf(event.target.value);
              if (packages.join() !== settings.packages.join()) change({ packages });
            }}
          />
        </label>
        <label className="radio notebook-network">
          <input
            type="checkbox"
            checked={settings.network}
            onChange={(event) => change({ network: event.target.checked })}
          />
          Network
        </label>
      </div>
      <div className="toolbar">
        <button type="button" className="primary" disabled={isRunning} onClick={() => notebook.runAll()}>
          <Icon name="play" size={16} />
          Run all
        </button>
        <button type="button" disabled={!isRunning} onClick={() => attempt(notebook.stop())}>
          <Icon name="stop" size={16} />
          Stop
        </button>
        <ConfirmButton
          className=""
          label="Reset variables"
          confirmLabel="Reset them now"
          disabled={context === null}
          onConfirm={() => attempt(notebook.reset())}
        />
      </div>
      <ol className="notebook-cells">
        {cells.map((cell, index) => (
          <NotebookCell
            key={cell.id}
            cell={cell}
            title={`Cell ${index + 1}`}
            language={settings.language}
            focusRequests={focus.id === cell.id ? focus.requests : 0}
            isFirst={index === 0}
            isLast={index === cells.length - 1}
            onChange={(code) => notebook.setCode(cell.id, code)}
            onRun={() => notebook.run(cell.id)}
            onRunAndGoOn={() => {
              notebook.run(cell.id);
              focusCell(notebook.nextCell(cell.id));
            }}
            onMove={(by) => notebook.moveCell(cell.id, by)}
            onRemove={() => notebook.removeCell(cell.id)}
          />
        ))}
      </ol>
      <div className="toolbar">
        <button type="button" onClick={() => focusCell(notebook.addCell())}>
          <Icon name="plus" size={16} />
          Add a cell
        </button>
      </div>
      <p className="quiet small-print">
        <kbd>Shift Enter</kbd> runs a cell and goes to the next. <kbd>Ctrl Enter</kbd> runs it and stays.{" "}
        <kbd>Escape</kbd> then <kbd>Tab</kbd> leaves the editor. Each cell may use 128 MiB and 30 seconds of processor
        time. Packages are those that the computer has prepared; nothing is downloaded. With other settings, the
        variables begin anew. The code stays in this browser.
      </p>
    </div>
  );
}
