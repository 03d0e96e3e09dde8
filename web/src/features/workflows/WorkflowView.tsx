import { useState } from "react";
import type { WorkflowDetails } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { formatDateTime } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { go } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { formatCost } from "../routines/routines.logic";
import { StepItem } from "./StepItem";
import { canRetry, concernsWorkflows, showValue, stateWord, toneOf } from "./workflows.logic";

/** One workflow: its steps in their order, and what can be done with it. */
export function WorkflowView({ id }: { id: string }) {
  const path = `/v1/workflows/${encodeURIComponent(id)}`;
  const found = useResource<WorkflowDetails>(path, {
    topic: "timeline",
    durable: true,
    concerns: concernsWorkflows,
    delay: 100,
    pollInterval: 30_000,
  });
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const workflow = found.value;
  const problem = failure ?? found.problem;

  function reload() {
    setFailure(null);
    found.reload();
  }

  async function act(action: "cancel" | "retry" | "answer", body: Record<string, unknown>) {
    setIsBusy(true);
    try {
      await request(`${path}/${action}`, { method: "POST", body });
      reload();
    } catch (error) {
      setFailure(problemOf(error));
    } finally {
      setIsBusy(false);
    }
  }

  return (
    <>
      <header className="head">
        <h1 className="workflows-text">{visibleText(workflow?.file ?? "Workflow")}</h1>
        <button type="button" className="small" onClick={() => go("/workflows")}>
          All workflows
        </button>
      </header>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {workflow === null && !problem && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {workflow && (
        <>
          <p className="quiet workflows-facts">
            <span className="workflows-state" data-tone={toneOf(workflow.state)}>
              {stateWord(workflow)}
            </span>
            <span>{formatDateTime(Date.parse(workflow.created) / 1000)}</span>
            {workflow.cost !== null && <span>{formatCost(workflow.cost)}</span>}
            <span>{workflow.id}</span>
          </p>
          {workflow.error !== null && <p className="problem-text workflows-text">{visibleText(workflow.error)}</p>}
          <div className="workflows-facts">
            {workflow.finished === null && (
              <ConfirmButton
                label="End workflow"
                confirmLabel="Really end it?"
                spoken="End workflow"
                disabled={isBusy}
                onConfirm={() => void act("cancel", {})}
              />
            )}
            {canRetry(workflow) && workflow.state !== "done" && (
              <button type="button" className="small" disabled={isBusy} onClick={() => void act("retry", {})}>
                Go on where it ended
              </button>
            )}
          </div>
          <ol className="workflows-steps" aria-label="Steps">
            {workflow.steps.map((step) => (
              <StepItem
                key={step.place}
                step={step}
                isBusy={isBusy}
                canRetry={canRetry(workflow)}
                onAnswer={(answer) => void act("answer", { step: step.place, answer })}
                onRetry={() => void act("retry", { step: step.place })}
              />
            ))}
          </ol>
          {workflow.state === "done" && workflow.result !== null && (
            <section aria-label="Result">
              <h2>Result</h2>
              <pre className="workflows-output">{visibleText(showValue(workflow.result))}</pre>
            </section>
          )}
          {workflow.output && (
            <section aria-label="Printed">
              <h2>Printed</h2>
              <pre className="workflows-output">{visibleText(workflow.output)}</pre>
            </section>
          )}
        </>
      )}
    </>
  );
}
