import { type FormEvent, useState } from "react";
import type { Workflow, WorkflowPage } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { formatDateTime } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { followLink, go, useRoute } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { actorText } from "../history/history.logic";
import { formatCost } from "../routines/routines.logic";
import { WorkflowView } from "./WorkflowView";
import { concernsWorkflows, stateWord, toneOf } from "./workflows.logic";
import "./workflows.css";

const WORKFLOWS = "/v1/workflows";

/** The workflows, and the steps of the one that is open. */
export default function WorkflowsPage() {
  const id = useRoute().query.get("id");
  return <div className="column workflows">{id === null ? <WorkflowList /> : <WorkflowView key={id} id={id} />}</div>;
}

function WorkflowList() {
  const list = useResource<WorkflowPage>(`${WORKFLOWS}?limit=100`, {
    topic: "timeline",
    durable: true,
    concerns: concernsWorkflows,
    delay: 100,
    pollInterval: 30_000,
  });
  return (
    <>
      <header className="head">
        <h1>Workflows</h1>
        <p className="quiet">Python files whose steps survive crashes, and that may wait for days.</p>
      </header>
      <RunForm />
      {list.problem && <Notice problem={list.problem} action={{ label: "Try again", run: list.reload }} />}
      {list.value === null && !list.problem && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {list.value?.workflows.length === 0 && (
        <p className="empty">No workflows yet. Write a Python file into the workspace and run it here.</p>
      )}
      <ul className="workflows-list">
        {list.value?.workflows.map((one) => (
          <li key={one.id}>
            <WorkflowLine workflow={one} />
          </li>
        ))}
      </ul>
    </>
  );
}

function WorkflowLine({ workflow }: { workflow: Workflow }) {
  const to = `/workflows?id=${workflow.id}`;
  return (
    <article className="card" aria-label={workflow.file}>
      <p className="workflows-title">
        <a href={to} onClick={(event) => followLink(event, to)}>
          {workflow.file}
        </a>
      </p>
      <p className="quiet workflows-facts">
        <span className="workflows-state" data-tone={toneOf(workflow.state)}>
          {stateWord(workflow)}
        </span>
        <span>{formatDateTime(Date.parse(workflow.created) / 1000)}</span>
        {workflow.cost !== null && <span>{formatCost(workflow.cost)}</span>}
        <span>{visibleText(actorText(workflow.who))}</span>
      </p>
      {workflow.error !== null && <p className="problem-text workflows-text">{visibleText(workflow.error)}</p>}
    </article>
  );
}

function RunForm() {
  const [file, setFile] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);

  async function run(event: FormEvent) {
    event.preventDefault();
    setProblem(null);
    try {
      const begun = await request<Workflow>(WORKFLOWS, { method: "POST", body: { file: file.trim() } });
      go(`/workflows?id=${begun.id}`);
    } catch (error) {
      setProblem(problemOf(error));
    }
  }

  return (
    <form className="workflows-run" onSubmit={(event) => void run(event)}>
      {problem && <Notice problem={problem} />}
      <label>
        File of the workspace
        <input
          required
          maxLength={1000}
          placeholder="flows/nightly.py"
          value={file}
          onChange={(event) => setFile(event.target.value)}
        />
      </label>
      <button type="submit" className="primary">
        Run workflow
      </button>
    </form>
  );
}
