import { type FormEvent, useState } from "react";
import type { AgentInfo, Run, RunChanges, RunPage, SpawnRun } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { formatDateTime, secondsOf } from "../../ui/format";
import { go, sessionPath } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { formatDollars } from "../models/usage.logic";
import { SlotPage } from "../slots/SlotPage";
import { ChangesDialog } from "./ChangesDialog";
import {
  actionsOf,
  beganText,
  changesText,
  concernsRuns,
  copyText,
  costText,
  limitsText,
  PERMISSIONS,
  type RunAction,
  type RunNode,
  stateText,
  toneOf,
  treeOf,
} from "./runs.logic";
import "./runs.css";

const RUNS = "/v1/slots/orchestrator/runs";
const LABELS: Record<RunAction, string> = {
  stop: "End",
  changes: "Show changes",
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

  const pathOf = (one: Run) => `${RUNS}/${encodeURIComponent(one.id)}`;
  const show = async (one: Run) => setShown(await request<RunChanges>(`${pathOf(one)}/changes`));

  /** A merge that would overwrite a change of others shows the changes instead. */
  async function take(one: Run, how: "merge" | "drop", force = false) {
    try {
      await request(`${pathOf(one)}/changes`, { method: "POST", body: { how, force } });
      setShown(null);
    } catch (error) {
      if (problemOf(error).code !== "orchestrator.conflict") throw error;
      await show(one);
    }
  }

  function act(one: Run, action: RunAction) {
    void run(async () => {
      if (action === "stop") await request(`${pathOf(one)}/stop`, { method: "POST", body: {} });
      else if (action === "changes") await show(one);
      else await take(one, action);
    });
  }

  const spawn = (wanted: SpawnRun) => run(() => request(RUNS, { method: "POST", body: wanted }));

  return (
    <SlotPage slot="orchestrator" className="runs" problem={problem} loaded={list.value !== null} onRetry={reload}>
      <NewRun busy={isBusy} onSpawn={spawn} />
      {list.value === null && !problem && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {list.value !== null && list.value.cost > 0 && (
        <p className="quiet">All runs together have cost {formatDollars(list.value.cost)}.</p>
      )}
      {list.value?.runs.length === 0 && <p className="empty">No runs yet.</p>}
      <RunTree nodes={treeOf(list.value?.runs ?? [])} busy={isBusy} onAct={act} />
      {list.value !== null && list.value.cursor !== null && <p className="quiet">The last 100 runs are shown.</p>}
      {shown && (
        <ChangesDialog
          changes={shown}
          busy={isBusy}
          onTake={(how, force) => void run(() => take(shown.run, how, force))}
          onClose={() => setShown(null)}
        />
      )}
    </SlotPage>
  );
}

function NewRun({ busy, onSpawn }: { busy: boolean; onSpawn: (wanted: SpawnRun) => Promise<boolean> }) {
  const [prompt, setPrompt] = useState("");
  const [folder, setFolder] = useState("");
  const [entry, setEntry] = useState("");
  const [agent, setAgent] = useState("");
  const [budget, setBudget] = useState("");
  const [denied, setDenied] = useState<ReadonlySet<string>>(new Set());
  const agents = useResource<AgentInfo[]>("/v1/agents");

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (prompt.trim() === "") return;
    const permissions = PERMISSIONS.map(({ name }) => name).filter((name) => !denied.has(name));
    const wanted: SpawnRun = { prompt: prompt.trim(), permissions };
    if (folder.trim() !== "") wanted.folder = folder.trim();
    if (folder.trim() !== "" && entry !== "") wanted.entry = Number(entry);
    if (agent !== "") wanted.agent = agent;
    if (budget !== "") wanted.budget = Number(budget);
    if (await onSpawn(wanted)) setPrompt("");
  }

  return (
    <form className="runs-new" onSubmit={(event) => void submit(event)}>
      <textarea
        className="runs-prompt"
        aria-label="Task"
        placeholder="Describe a task"
        rows={2}
        maxLength={100_000}
        value={prompt}
        onChange={(event) => setPrompt(event.target.value)}
      />
      <label>
        Folder to copy
        <input
          placeholder="none, such as site"
          maxLength={1000}
          value={folder}
          onChange={(event) => setFolder(event.target.value)}
        />
      </label>
      {folder.trim() !== "" && (
        <label>
          As of history entry
          <input
            type="number"
            min="1"
            step="1"
            placeholder="as it is now"
            value={entry}
            onChange={(event) => setEntry(event.target.value)}
          />
        </label>
      )}
      <label>
        Agent
        <select value={agent} onChange={(event) => setAgent(event.target.value)}>
          <option value="">default</option>
          {(agents.value ?? [])
            .filter((one) => one.problem === null)
            .map((one) => (
              <option key={one.name} value={one.name}>
                {one.name}
              </option>
            ))}
        </select>
      </label>
      <label>
        Budget in dollars
        <input
          type="number"
          min="0.01"
          max="100000"
          step="0.01"
          placeholder="no limit"
          value={budget}
          onChange={(event) => setBudget(event.target.value)}
        />
      </label>
      <details className="runs-may">
        <summary>Permissions: {denied.size === 0 ? "everything" : `all but ${[...denied].join(", ")}`}</summary>
        <fieldset>
          <legend className="quiet">Besides working in its own computer, it may</legend>
          {PERMISSIONS.map(({ name, words }) => (
            <label key={name} className="radio">
              <input type="checkbox" checked={!denied.has(name)} onChange={() => setDenied(toggled(denied, name))} />
              {words}
            </label>
          ))}
        </fieldset>
      </details>
      <button type="submit" className="primary" disabled={busy || prompt.trim() === ""}>
        Start run
      </button>
    </form>
  );
}

function toggled(names: ReadonlySet<string>, name: string): ReadonlySet<string> {
  return new Set(names.has(name) ? [...names].filter((one) => one !== name) : [...names, name]);
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
          <RunCard run={run} busy={busy} onAct={onAct} />
          {below.length > 0 && <RunTree nodes={below} busy={busy} onAct={onAct} />}
        </li>
      ))}
    </ul>
  );
}

function RunCard({ run, busy, onAct }: { run: Run; busy: boolean; onAct: RunTreeProps["onAct"] }) {
  const title = visibleText(run.title);
  return (
    <div className="card">
      <p className="runs-title" dir="auto">
        {title}
      </p>
      <p className="quiet runs-facts">
        <span className="chip" data-tone={toneOf(run)}>
          {stateText(run)}
        </span>
        <span>{visibleText(run.agent)}</span>
        <time dateTime={run.created}>{formatDateTime(secondsOf(run.created))}</time>
        {beganText(run) !== "" && <span>{visibleText(beganText(run))}</span>}
        {run.folder !== null && <span>{copyText(run.folder, run.entry)}</span>}
        {costText(run, formatDollars) !== "" && <span>{costText(run, formatDollars)}</span>}
        {changesText(run) !== "" && <span>{changesText(run)}</span>}
      </p>
      {limitsText(run) !== "" && <p className="quiet runs-facts">{limitsText(run)}</p>}
      {run.error !== null && <p className="problem-text">{visibleText(run.error)}</p>}
      <div className="runs-facts runs-actions">
        <button
          type="button"
          className="small"
          aria-label={`Open session: ${title}`}
          onClick={() => go(sessionPath(run.session))}
        >
          Open session
        </button>
        {actionsOf(run).map((action) =>
          action === "drop" || action === "stop" ? (
            <ConfirmButton
              key={action}
              label={LABELS[action]}
              confirmLabel={`${LABELS[action]}?`}
              spoken={`${LABELS[action]}: ${title}`}
              disabled={busy}
              onConfirm={() => onAct(run, action)}
            />
          ) : (
            <button
              key={action}
              type="button"
              className="small"
              disabled={busy}
              aria-label={`${LABELS[action]}: ${title}`}
              onClick={() => onAct(run, action)}
            >
              {LABELS[action]}
            </button>
          ),
        )}
      </div>
    </div>
  );
}
