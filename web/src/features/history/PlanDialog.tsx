import { useEffect, useState } from "react";
import type { HistoryOutcome, HistoryPlan } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { actionTitle, requestOf, type Action } from "./history.logic";
import { Steps } from "./Steps";

/** Shows every file's fate before anything happens, and does it on the owner's word. */
export function PlanDialog({ action, onClose, onDone }: { action: Action; onClose: () => void; onDone: () => void }) {
  const [plan, setPlan] = useState<HistoryPlan | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [choose, setChoose] = useState<Record<string, "old" | "mine">>({});
  const [busy, setBusy] = useState(false);
  const toasts = useToasts();

  useEffect(() => {
    let current = true;
    request<HistoryPlan>("/v1/history/plan", { method: "POST", body: { ...action, again: undefined } })
      .then((found) => current && setPlan(found))
      .catch((error: unknown) => current && setProblem(problemOf(error)));
    return () => {
      current = false;
    };
  }, [action]);

  const chosen: Action = action.action === "revert" ? { ...action, choose } : action;
  const open = plan?.conflicts.filter((conflict) => choose[conflict["path"] ?? ""] === undefined) ?? [];

  async function carryOut() {
    setBusy(true);
    setProblem(null);
    const { path, body } = requestOf(chosen);
    try {
      const outcome = await request<HistoryOutcome>(path, { method: "POST", body });
      const left = outcome.unsettled.length;
      toasts.done(`${actionTitle(action)}: done${left > 0 ? `, but ${left} could not be settled` : ""}`);
      onDone();
      onClose();
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  }

  return (
    <Dialog title={actionTitle(action)} onClose={onClose} wide>
      {problem && <Notice problem={problem} />}
      {plan === null && problem === null && <p className="quiet">Looking at what would happen…</p>}
      {plan !== null && (
        <>
          {plan.shared && <p className="quiet">Others worked at the same time as this turn: look whether all of this is its own.</p>}
          <Steps steps={plan.steps} total={plan.total} />
          {plan.conflicts.length > 0 && (
            <fieldset className="conflicts">
              <legend>Changed again since: which one stays?</legend>
              {plan.conflicts.map((conflict) => {
                const path = conflict["path"] ?? "";
                return (
                  <div key={path} className="conflict">
                    <code className="path">{path}</code>
                    <span className="quiet">{conflict["reason"]}</span>
                    {action.action === "revert" && (
                      <span className="replies">
                        {(["mine", "old"] as const).map((side) => (
                          <label key={side} className="radio">
                            <input
                              type="radio"
                              name={path}
                              checked={choose[path] === side}
                              onChange={() => setChoose((all) => ({ ...all, [path]: side }))}
                            />
                            {side === "mine" ? "as it is now" : "as it was before"}
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
      <div className="dialog-foot">
        <button onClick={onClose}>Cancel</button>
        <button
          className="primary"
          autoFocus
          disabled={busy || plan === null || (action.action === "revert" && open.length > 0)}
          onClick={() => void carryOut()}
        >
          {busy ? "Working…" : verbOf(action)}
        </button>
      </div>
    </Dialog>
  );
}

function verbOf(action: Action): string {
  return action.action === "revert" && action.again ? "Do again" : VERBS[action.action];
}

const VERBS: Record<Action["action"], string> = { undo: "Undo", redo: "Redo", restore: "Restore", revert: "Take back" };
