import { type FormEvent, useState } from "react";
import type { RoutineTimes } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { Dialog } from "../../ui/Dialog";
import { formatDateTime } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { type Draft, EMPTY, hasTimes, newRoutine, TRIGGERS, type Trigger, WORKS, type Work } from "./routines.logic";

const TRIGGER_NAMES = Object.keys(TRIGGERS) as Trigger[];
const WORK_NAMES = Object.keys(WORKS) as Work[];

export function AddRoutineDialog({ onClose }: { onClose: () => void }) {
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const [times, setTimes] = useState<RoutineTimes | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const change = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes });

  async function run(work: () => Promise<void>) {
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(problemOf(error));
    }
  }

  function add(event: FormEvent) {
    event.preventDefault();
    void run(async () => {
      await request("/v1/routines", { method: "POST", body: newRoutine(draft) });
      onClose();
    });
  }

  const showTimes = () =>
    run(async () => {
      const { routine } = newRoutine({ ...draft, what: draft.what.trim() || "x" });
      setTimes(await request<RoutineTimes>("/v1/routines/plan", { method: "POST", body: { routine } }));
    });

  return (
    <Dialog title="Add a routine" onClose={onClose}>
      <form className="stack" onSubmit={add}>
        {problem && <Notice problem={problem} />}
        <label>
          Name
          <input
            autoFocus
            required
            maxLength={63}
            pattern="[a-z0-9][a-z0-9_\-]*"
            title="Small letters, digits, - and _"
            placeholder="morning-report"
            value={draft.name}
            onChange={(event) => change({ name: event.target.value })}
          />
        </label>
        <TriggerFields draft={draft} onChange={change} />
        {hasTimes(draft) && (
          <button type="button" className="small routines-times-button" onClick={() => void showTimes()}>
            Show the next ten times
          </button>
        )}
        {times && (
          <ol className="routines-times" aria-label="Next times">
            {times.times.map((one) => (
              <li key={one}>{formatDateTime(Date.parse(one) / 1000)}</li>
            ))}
          </ol>
        )}
        <WorkFields draft={draft} onChange={change} />
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary">
            Add routine
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface FieldsProps {
  draft: Draft;
  onChange: (changes: Partial<Draft>) => void;
}

function TriggerFields({ draft, onChange }: FieldsProps) {
  return (
    <>
      <label>
        Begins
        <select value={draft.trigger} onChange={(event) => onChange({ trigger: event.target.value as Trigger })}>
          {TRIGGER_NAMES.map((one) => (
            <option key={one} value={one}>
              {TRIGGERS[one].label}
            </option>
          ))}
        </select>
      </label>
      {draft.trigger !== "webhook" && (
        <label>
          When
          <input
            required
            maxLength={500}
            placeholder={TRIGGERS[draft.trigger].placeholder}
            value={draft.when}
            onChange={(event) => onChange({ when: event.target.value })}
          />
        </label>
      )}
      {(draft.trigger === "cron" || draft.trigger === "at") && (
        <label>
          Time zone
          <input
            maxLength={64}
            placeholder="That of this machine"
            value={draft.zone}
            onChange={(event) => onChange({ zone: event.target.value })}
          />
        </label>
      )}
      <label>
        Only between
        <input
          maxLength={11}
          placeholder="08:00-22:00, or any time"
          value={draft.hours}
          onChange={(event) => onChange({ hours: event.target.value })}
        />
      </label>
    </>
  );
}

function WorkFields({ draft, onChange }: FieldsProps) {
  return (
    <>
      <label>
        Work
        <select value={draft.work} onChange={(event) => onChange({ work: event.target.value as Work })}>
          {WORK_NAMES.map((one) => (
            <option key={one} value={one}>
              {WORKS[one].label}
            </option>
          ))}
        </select>
      </label>
      <label>
        {WORKS[draft.work].label}
        <textarea
          required
          rows={draft.work === "prompt" ? 4 : 2}
          maxLength={32_768}
          placeholder={WORKS[draft.work].placeholder}
          value={draft.what}
          onChange={(event) => onChange({ what: event.target.value })}
        />
      </label>
      {draft.work !== "command" && (
        <>
          <label>
            Budget of a run in US dollars
            <input
              inputMode="decimal"
              pattern="[0-9]*[.,]?[0-9]+"
              title="A number, such as 0.50"
              maxLength={12}
              placeholder="No limit of its own"
              value={draft.budget}
              onChange={(event) => onChange({ budget: event.target.value })}
            />
          </label>
          <label>
            When the agent asks
            <select
              value={draft.asks}
              onChange={(event) => onChange({ asks: event.target.value === "refuse" ? "refuse" : "park" })}
            >
              <option value="park">Wait for me</option>
              <option value="refuse">Answer no</option>
            </select>
          </label>
        </>
      )}
    </>
  );
}
