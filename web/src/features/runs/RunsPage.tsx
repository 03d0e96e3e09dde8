import { type FormEvent, useState } from "react";
import type { FileChange, Run, RunChanges, RunPage } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { go } from "../../ui/route";
import { actionsOf, changesText, concernsRuns, type RunAction, type RunNode, stateText, treeOf } from "./runs.logic";
import "./runs.css";

const RUNS = "/v1/slots/orchestrator/runs";
const LABELS: Record<RunAction, string> = {
  stop: "End",
  changes: "Show changes",
  merge: "Merge",
  drop: "Drop changes",
};

/** Agents that work in parallel, as a tree: who began whom, how far they are, and what they have changed. */
export default function RunsPage() {
  const list = useResource<RunPage>(`${RUNS}?limit=100`, {
    topic: "timeline",
    durable: true,
    concerns: concernsRuns,
    delay: 100,
    pollInterval: 3_000,
  });
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const [shown, setShown] = useState<RunChanges | null>(null);
  const problem = failure ?? list.problem;
  const isOff = problem?.code === "orchestrator.disabled";

  function reload() {
    setFailure(null);
    list.reload();
  }

  async function run(work: () => Promise<unknown>): Promise<boolean> {
    setIsBusy(true);
    try {
      await work();
      reload();
      return true;
    } catch (error) {
      setFailure(problemOf(error));
      return false;
    } finally {
      setIsBusy(false);
    }
  }

  function act(one: Run, action: RunAction) {
    const path = `${RUNS}/${encodeURIComponent(one.id)}`;
    void run(async () => {
      if (action === "stop") await request(`${path}/stop`, { method: "POST", body: {} });
      else if (action === "changes") setShown(await request<RunChanges>(`${path}/changes`));
      else await request(`${path}/changes`, { method: "POST", body: { how: action } });
    });
  }

  const spawn = (prompt: string, folder: string) =>
    run(() => request(RUNS, { method: "POST", body: folder === "" ? { prompt } : { prompt, folder } }));

  return (
    <div className="column runs">
      <header className="head">
        <h1>Runs</h1>
        <p className="quiet">Agents that work in parallel, each in a computer and a copy of its own.</p>
      </header>
      {problem && !isOff && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {isOff ? (
        <p className="empty">
          Runs are off. To turn them on, set <code>slots.orchestrator = "local"</code> in freehold.toml and restart
          Freehold.
        </p>
      ) : (
        <>
          <NewRun busy={isBusy} onSpawn={spawn} />
          {list.value === null && !problem && (
            <p className="quiet" role="status">
              Loading…
            </p>
          )}
          {list.value?.runs.length === 0 && <p className="empty">No runs yet.</p>}
          <RunTree nodes={treeOf(list.value?.runs ?? [])} busy={isBusy} onAct={act} />
        </>
      )}
      {shown && <Changes changes={shown} onClose={() => setShown(null)} />}
    </div>
  );
}

function NewRun({ busy, onSpawn }: { busy: boolean; onSpawn: (prompt: string, folder: string) => Promise<boolean> }) {
  const [prompt, setPrompt] = useState("");
  const [folder, setFolder] = useState("");

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (prompt.trim() !== "" && (await onSpawn(prompt.trim(), folder.trim()))) setPrompt("");
  }

  return (
    <form className="runs-new" onSubmit={(event) => void submit(event)}>
      <input
        aria-label="Task"
        placeholder="Describe a task"
        value={prompt}
        onChange={(event) => setPrompt(event.target.value)}
      />
      <input
        aria-label="Folder to copy"
        placeholder="Folder to copy, such as site"
        maxLength={1000}
        value={folder}
        onChange={(event) => setFolder(event.target.value)}
      />
      <button type="submit" className="primary" disabled={busy || prompt.trim() === ""}>
        Start run
      </button>
    </form>
  );
}

interface RunTreeProps {
  nodes: RunNode[];
  busy: boolean;
  onAct: (run: Run, action: RunAction) => void;
}

function RunTree({ nodes, busy, onAct }: RunTreeProps) {
  return (
    <ul className="runs-list">
      {nodes.map(({ run, below }) => (
        <li key={run.id}>
          <div className="card">
            <p className="runs-title">{run.title}</p>
            <p className="quiet runs-facts">
              <span>{stateText(run)}</span>
              <span>{run.agent}</span>
              {run.folder !== null && <span>copy of {run.folder}</span>}
              {run.cost !== null && <span>cost {run.cost.toFixed(4)}</span>}
              {changesText(run) !== "" && <span>{changesText(run)}</span>}
            </p>
            {run.error !== null && <p className="problem-text">{run.error}</p>}
            <div className="runs-facts">
              <button type="button" className="small" onClick={() => go(`/sessions?id=${run.session}`)}>
                Open session
              </button>
              {actionsOf(run).map((action) => (
                <button
                  key={action}
                  type="button"
                  className="small"
                  disabled={busy}
                  aria-label={`${LABELS[action]}: ${run.title}`}
                  onClick={() => onAct(run, action)}
                >
                  {LABELS[action]}
                </button>
              ))}
            </div>
          </div>
          {below.length > 0 && <RunTree nodes={below} busy={busy} onAct={onAct} />}
        </li>
      ))}
    </ul>
  );
}

function Changes({ changes, onClose }: { changes: RunChanges; onClose: () => void }) {
  return (
    <Dialog title={`Changes of “${changes.run.title}”`} onClose={onClose}>
      {changes.files.length === 0 && <p className="empty">No changes.</p>}
      {changes.files.map((file) => (
        <ChangedFile key={file.path} file={file} />
      ))}
    </Dialog>
  );
}

function ChangedFile({ file }: { file: FileChange }) {
  return (
    <section>
      <h3 className="runs-title">
        {file.path} <span className="quiet">{file.kind}</span>
      </h3>
      {file.conflict && <p className="problem-text">Others have changed this file too.</p>}
      {file.diff !== null && <pre className="runs-diff">{file.diff}</pre>}
    </section>
  );
}
