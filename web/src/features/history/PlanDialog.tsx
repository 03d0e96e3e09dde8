import { useEffect, useState } from "react";
import type { HistoryOutcome, HistoryPlan } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { Dialog } from "../../ui/Dialog";
import { countOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { actionTitle, type HistoryAction, requestOf } from "./history.logic";
import { PlannedSteps } from "./PlannedSteps";
import { RestoreButtons, RestoreStatus } from "./RestoreStatus";
import { cancelState } from "./restore.logic";
import { useRestore } from "./useRestore";
import "./plan.css";

/** Shows what an action will do to every file, and does it when the owner confirms. */
export function PlanDialog({
  action,
  onClose,
  onDone,
}: {
  action: HistoryAction;
  onClose: () => void;
  onDone: () => void;
}) {
  const [plan, setPlan] = useState<HistoryPlan | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [choose, setChoose] = useState<Record<string, "old" | "mine">>({});
  const { run, start, cancel } = useRestore();

  useEffect(() => {
    let current = true;
    request<HistoryPlan>("/v1/history/plan", { method: "POST", body: { ...action, again: undefined } })
      .then((found) => current && setPlan(found))
      .catch((error: unknown) => current && setProblem(problemOf(error)));
    return () => {
      current = false;
    };
  }, [action]);

  const chosen: HistoryAction = action.action === "revert" ? { ...action, choose } : action;
  const open = plan?.conflicts.filter((conflict) => choose[conflict["path"] ?? ""] === undefined) ?? [];

  async function carryOut() {
    setProblem(null);
    const { path, body } = requestOf(chosen);
    const problem = await start({
      send: (id) => request<HistoryOutcome>(path, { method: "POST", body: { ...body, restore_id: id } }),
      doneText: ({ total_unsettled: left }) =>
        `${actionTitle(action)}: done${left > 0 ? `, but ${countOf(left, "file")} could not be changed` : ""}`,
      cancelledText: `${actionTitle(action)}: cancelled. No file was changed`,
      onDone,
      onClose,
    });
    setProblem(problem);
  }

  return (
    <Dialog
      title={actionTitle(action)}
      onClose={run !== null && cancelState(run) !== "too late" ? cancel : onClose}
      wide
    >
      {problem && <Notice problem={problem} />}
      {plan === null && problem === null && <p className="quiet">Loading the plan…</p>}
      {plan !== null && (
        <>
          {plan.shared && (
            <p className="quiet">Someone else changed files during this turn. Check that these changes belong to it.</p>
          )}
          <PlannedSteps steps={plan.steps} total={plan.total} />
          {plan.conflicts.length > 0 && (
            <fieldset className="plan-conflicts">
              <legend>These files were changed again later. Which version do you want to keep?</legend>
              {plan.conflicts.map((conflict) => {
                const path = conflict["path"] ?? "";
                return (
                  <div key={path} className="plan-conflict">
                    <code className="path">{path}</code>
                    <span className="quiet">{conflict["reason"]}</span>
                    {action.action === "revert" && (
                      <span className="answers">
                        {(["mine", "old"] as const).map((side) => (
                          <label key={side} className="radio">
                            <input
                              type="radio"
                              name={path}
                              checked={choose[path] === side}
                              onChange={() => setChoose((all) => ({ ...all, [path]: side }))}
                            />
                            {side === "mine" ? "the current one" : "the one before"}
                          </label>
                        ))}
                      </span>
                    )}
                  </div>
                );
              })}
            </fieldset>
          )}
        </>
      )}
      {run === null ? (
        <div className="dialog-foot">
          <button onClick={onClose}>Cancel</button>
          <button
            className="primary"
            autoFocus
            disabled={plan === null || (action.action === "revert" && open.length > 0)}
            onClick={() => void carryOut()}
          >
            {verbOf(action)}
          </button>
        </div>
      ) : (
        <>
          <RestoreStatus run={run} />
          <RestoreButtons run={run} doing="Working…" onCancel={cancel} onClose={onClose} />
        </>
      )}
    </Dialog>
  );
}

function verbOf(action: HistoryAction): string {
  if (action.action === "revert" && action.of) return action.again ? "Redo" : "Undo";
  return VERBS[action.action];
}

const VERBS: Record<HistoryAction["action"], string> = {
  undo: "Undo",
  redo: "Redo",
  restore: "Restore",
  revert: "Revert",
};
