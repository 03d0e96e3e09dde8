import { useEffect, useState } from "react";
import type { RewindResult } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { Dialog } from "../../ui/Dialog";
import { countOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import type { Turn } from "./history.logic";
import "./rewind.css";
import { PlannedSteps } from "./PlannedSteps";
import { RestoreButtons, RestoreStatus } from "./RestoreStatus";
import { cancelState } from "./restore.logic";
import { useRestore } from "./useRestore";

type What = RewindResult["what"];
const CHOICES: readonly { what: What; title: string; description: string }[] = [
  { what: "both", title: "Both", description: "Go back to before this turn with files and conversation" },
  { what: "files", title: "Files only", description: "Keep the conversation" },
  { what: "chat", title: "Conversation only", description: "Keep the files" },
];

/** Rewinds a session, its files or both to before a turn. It shows what will happen, and asks to confirm. */
export function RewindDialog({
  turn: { session, turn },
  onClose,
  onDone,
}: {
  turn: Turn;
  onClose: () => void;
  onDone: () => void;
}) {
  const [what, setWhat] = useState<What>("both");
  const [plan, setPlan] = useState<RewindResult | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const { run, start, cancel } = useRestore();
  const address = `/v1/sessions/${encodeURIComponent(session)}/rewind`;

  useEffect(() => {
    let current = true;
    setPlan(null);
    setProblem(null);
    request<RewindResult>(address, { method: "POST", body: { turn, what, dry_run: true } })
      .then((found) => current && setPlan(found))
      .catch((error: unknown) => current && setProblem(problemOf(error)));
    return () => {
      current = false;
    };
  }, [address, turn, what]);

  async function carryOut() {
    setProblem(null);
    const problem = await start({
      send: (id) => request<RewindResult>(address, { method: "POST", body: { turn, what, restore_id: id } }),
      doneText: () => "Rewound to before this turn",
      cancelledText: "Rewind cancelled. Nothing was changed",
      onDone,
      onClose,
    });
    setProblem(problem);
  }

  const changesFiles = what !== "chat";
  const files = plan?.files as { steps?: Record<string, string>[]; total?: number } | null | undefined;
  return (
    <Dialog
      title={`Rewind to before turn ${turn}`}
      onClose={run !== null && changesFiles && cancelState(run) !== "too late" ? cancel : onClose}
      wide
    >
      <fieldset className="rewind-choices" disabled={run !== null}>
        <legend className="visually-hidden">What to rewind</legend>
        {CHOICES.map((choice) => (
          <label key={choice.what} className="radio">
            <input type="radio" name="rewind" checked={what === choice.what} onChange={() => setWhat(choice.what)} />
            <span>
              <strong>{choice.title}</strong> <span className="quiet">{choice.description}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {problem && <Notice problem={problem} />}
      {plan === null && problem === null && <p className="quiet">Loading the plan…</p>}
      {files?.steps && <PlannedSteps steps={files.steps} total={files.total ?? files.steps.length} />}
      {plan !== null && what !== "files" && (
        <p className="quiet">
          {plan.events === 0
            ? "There are no messages after this turn."
            : `${countOf(plan.events, "event")} will be removed from the conversation. You cannot undo this.`}
        </p>
      )}
      {run === null ? (
        <div className="dialog-foot">
          <button onClick={onClose}>Cancel</button>
          <button className="primary" disabled={plan === null} onClick={() => void carryOut()}>
            Rewind
          </button>
        </div>
      ) : (
        <>
          {changesFiles && <RestoreStatus run={run} />}
          <RestoreButtons run={run} doing="Working…" onCancel={changesFiles ? cancel : null} onClose={onClose} />
        </>
      )}
    </Dialog>
  );
}
