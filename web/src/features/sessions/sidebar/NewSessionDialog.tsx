import { useState, type FormEvent } from "react";
import type { AgentRow, ModelsState } from "../../../client/api";
import { useAnswer } from "../../../ui/answers";
import { Dialog } from "../../../ui/Dialog";
import { Notice } from "../../../ui/Notice";
import { go } from "../../shell/route";
import { agentChoices } from "./agents.logic";
import { useNewSession } from "./newSession";

const OTHER = "\0other";

/** Who shall work, and with which model. */
export function NewSessionDialog({ onClose }: { onClose: () => void }) {
  const agents = useAnswer<AgentRow[]>("/v1/agents");
  const models = useAnswer<ModelsState>("/v1/models");
  const [agent, setAgent] = useState<string | null>(null);
  const [model, setModel] = useState("");
  const [other, setOther] = useState("");
  const [busy, setBusy] = useState(false);
  const open = useNewSession();
  const choices = agentChoices(agents.value ?? []);
  const chosen = agent ?? choices.find((one) => one.usable)?.name ?? null;

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (chosen === null) return;
    const named = model === OTHER ? other.trim() : model;
    setBusy(true);
    if (await open({ agent: chosen, ...(named === "" ? {} : { model: named }) })) onClose();
    setBusy(false);
  }

  return (
    <Dialog title="New session" onClose={onClose}>
      {agents.problem && <Notice problem={agents.problem} action={{ label: "Try again", run: agents.reload }} />}
      <form className="stack" onSubmit={(event) => void submit(event)}>
        <fieldset className="agents">
          <legend>Agent</legend>
          {choices.map((one) => (
            <label key={one.name} data-usable={one.usable || undefined}>
              <input type="radio" name="agent" value={one.name} checked={one.name === chosen} disabled={!one.usable} autoFocus={one.name === chosen} onChange={() => setAgent(one.name)} />
              <span>
                {one.title}
                {one.isDefault && <span className="chip">default</span>}
              </span>
              {one.note && <small>{one.note}</small>}
            </label>
          ))}
        </fieldset>
        {choices.some((one) => !one.usable) && (
          <p className="quiet small-print">
            Agents can be added in{" "}
            <button type="button" className="text-button" onClick={() => go("/settings/agents")}>
              Settings
            </button>
          </p>
        )}
        <label>
          Model
          <select value={model} onChange={(event) => setModel(event.target.value)}>
            <option value="">The agent’s usual one</option>
            {models.value?.models.map((one) => (
              <option key={one.name} value={one.name}>
                {one.name}
                {one.model && ` (${one.model})`}
                {one.problem && " – cannot be asked now"}
              </option>
            ))}
            <option value={OTHER}>Another…</option>
          </select>
        </label>
        {model === OTHER && <input aria-label="Name of the model" placeholder="As its provider calls it" maxLength={200} required autoFocus value={other} onChange={(event) => setOther(event.target.value)} />}
        {models.value?.help && (
          <p className="quiet small-print">
            No model is connected yet.{" "}
            <button type="button" className="text-button" onClick={() => go("/settings/models")}>
              How to connect one
            </button>
          </p>
        )}
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary" disabled={busy || chosen === null}>
            Start
          </button>
        </div>
      </form>
    </Dialog>
  );
}
