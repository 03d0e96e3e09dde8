import type { Routine } from "../../client/api";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { shorten } from "../../ui/format";
import { go } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import type { RoutineAction } from "./RoutinesPage";
import { formatCost, isOpen, markText, runWord, stateText, toneOf, triggerText, workText } from "./routines.logic";

interface RoutineCardProps {
  routine: Routine;
  busy: boolean;
  onAct: (action: RoutineAction) => void;
}

/** One routine: next run, last result, cost, the strip of its last runs, and what can be done with it. */
export function RoutineCard({ routine, busy, onAct }: RoutineCardProps) {
  const { last } = routine;
  const isPaused = routine.state === "paused";
  return (
    <article className="card" aria-label={routine.name}>
      <p className="routines-title">{routine.name}</p>
      <p className="quiet routines-facts">
        <span>{stateText(routine)}</span>
        {triggerText(routine) !== "" && <span>{triggerText(routine)}</span>}
        <span>{formatCost(routine.cost)} in 30 days</span>
        {routine.source === "manifest" && <span>from freehold.toml</span>}
      </p>
      <p className="routines-work">{visibleText(shorten(workText(routine), 240))}</p>
      {routine.reason !== null && <p className="problem-text">{visibleText(routine.reason)}</p>}
      {last !== null && (
        <p className="routines-last">
          Last run: {runWord(last)}
          {last.error !== null && ` – ${visibleText(last.error)}`}
          {last.error === null && last.result !== null && last.result.trim() !== "" && !last.quiet && (
            <> – {visibleText(shorten(last.result.trim(), 200))}</>
          )}
        </p>
      )}
      {routine.recent.length > 0 && (
        <ol className="routines-strip" aria-label={`Last runs of ${routine.name}, the newest last`}>
          {[...routine.recent].reverse().map((mark) => (
            <li key={mark.id} data-tone={toneOf(mark.state)} title={markText(mark)}>
              <span className="visually-hidden">{markText(mark)}</span>
            </li>
          ))}
        </ol>
      )}
      <div className="routines-facts">
        <button type="button" className="small" disabled={busy} onClick={() => onAct("run")}>
          Run now
        </button>
        <button type="button" className="small" disabled={busy} onClick={() => onAct(isPaused ? "resume" : "pause")}>
          {isPaused ? "Resume" : "Pause"}
        </button>
        {isOpen(last) && (
          <button type="button" className="small" disabled={busy} onClick={() => onAct("stop")}>
            End this run
          </button>
        )}
        {last?.session != null && (
          <button type="button" className="small" onClick={() => go(`/sessions?id=${last.session}`)}>
            Open last session
          </button>
        )}
        {routine.trigger === "webhook" && (
          <ConfirmButton
            label="New secret"
            confirmLabel="Replace the secret?"
            spoken={`New secret: ${routine.name}`}
            disabled={busy}
            onConfirm={() => onAct("webhook")}
          />
        )}
        {routine.source !== "manifest" && (
          <ConfirmButton
            label="Remove"
            confirmLabel="Really remove?"
            spoken={`Remove: ${routine.name}`}
            disabled={busy}
            onConfirm={() => onAct("remove")}
          />
        )}
      </div>
    </article>
  );
}
