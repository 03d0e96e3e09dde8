import { useState } from "react";
import type { Routine, RoutineHook, RoutinePage } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { CopyButton } from "../../ui/CopyButton";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { AddRoutineDialog } from "./AddRoutineDialog";
import { RoutineCard } from "./RoutineCard";
import { concernsRoutines } from "./routines.logic";
import "./routines.css";

const ROUTINES = "/v1/routines";

export type RoutineAction = "run" | "stop" | "pause" | "resume" | "remove" | "webhook";

/** What begins without the owner: when it does next, how it went, what it cost; run it now, pause it, add another. */
export default function RoutinesPage() {
  const list = useResource<RoutinePage>(`${ROUTINES}?limit=200`, {
    topic: "timeline",
    durable: true,
    concerns: concernsRoutines,
    delay: 100,
    pollInterval: 30_000,
  });
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const [isAdding, setIsAdding] = useState(false);
  const [hook, setHook] = useState<RoutineHook | null>(null);
  const problem = failure ?? list.problem;

  function reload() {
    setFailure(null);
    list.reload();
  }

  async function act(routine: Routine, action: RoutineAction) {
    const path = `${ROUTINES}/${encodeURIComponent(routine.name)}`;
    setIsBusy(true);
    try {
      if (action === "remove") await request(path, { method: "DELETE" });
      else if (action === "webhook")
        setHook(await request<RoutineHook>(`${path}/webhook`, { method: "POST", body: {} }));
      else if (action === "stop") await request(`${path}/runs/${routine.last?.id}/stop`, { method: "POST", body: {} });
      else await request(`${path}/${action}`, { method: "POST", body: {} });
      reload();
    } catch (error) {
      setFailure(problemOf(error));
    } finally {
      setIsBusy(false);
    }
  }

  return (
    <div className="column routines">
      <header className="head">
        <h1>Routines</h1>
        <p className="quiet">Work that begins without you, within bounds.</p>
        <button type="button" className="primary" onClick={() => setIsAdding(true)}>
          Add a routine
        </button>
      </header>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {list.value === null && !problem && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {list.value?.routines.length === 0 && (
        <p className="empty">No routines yet. Let an agent report every morning, or look after a checklist.</p>
      )}
      <ul className="routines-list">
        {list.value?.routines.map((routine) => (
          <li key={routine.name}>
            <RoutineCard routine={routine} busy={isBusy} onAct={(action) => void act(routine, action)} />
          </li>
        ))}
      </ul>
      {isAdding && (
        <AddRoutineDialog
          onClose={() => {
            setIsAdding(false);
            reload();
          }}
        />
      )}
      {hook && <HookDialog hook={hook} onClose={() => setHook(null)} />}
    </div>
  );
}

function HookDialog({ hook, onClose }: { hook: RoutineHook; onClose: () => void }) {
  return (
    <Dialog title="Signed requests" onClose={onClose}>
      <div className="stack">
        <p>Send requests to this address, signed as Standard Webhooks describes it.</p>
        <p className="routines-code">
          <code>{hook.url}</code>
        </p>
        <p>The secret is shown once. The one before no longer works.</p>
        <p className="routines-code">
          <code>{hook.secret}</code> <CopyButton text={hook.secret} />
        </p>
        <div className="dialog-foot">
          <button type="button" className="primary" onClick={onClose}>
            Close
          </button>
        </div>
      </div>
    </Dialog>
  );
}
