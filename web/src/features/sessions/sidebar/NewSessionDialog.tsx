import { type FormEvent, useState } from "react";
import type { AgentInfo, ModelsState } from "../../../client/api";
import { useResource } from "../../../data/resource";
import { Dialog } from "../../../ui/Dialog";
import { Notice } from "../../../ui/Notice";
import { go } from "../../../ui/route";
import { useSetup } from "../setup/SetupProvider";
import { agentChoices } from "./agentChoices.logic";
import { useNewSession } from "./useNewSession";

const OTHER = "\0other";

/** Chooses the agent and the model of a new session. */
export function NewSessionDialog({ onClose }: { onClose: () => void }) {
  const agents = useResource<AgentInfo[]>("/v1/agents");
  const models = useResource<ModelsState>("/v1/models");
  const [agent, setAgent] = useState<string | null>(null);
  const [model, setModel] = useState("");
  const [other, setOther] = useState("");
  const [busy, setBusy] = useState(false);
  const startSession = useNewSession();
  const { connectModel } = useSetup();
  const choices = agentChoices(agents.value ?? []);
  const chosen = agent ?? choices.find((one) => one.usable)?.name ?? null;

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (chosen === null) return;
    const named = model === OTHER ? other.trim() : model;
    setBusy(true);
    if (await startSession({ agent: chosen, ...(named === "" ? {} : { model: named }) })) onClose();
    setBusy(false);
  }

  return (
    <Dialog title="New session" onClose={onClose}>
      {agents.problem && <Notice problem={agents.problem} action={{ label: "Try again", run: agents.reload }} />}
      <form className="stack" onSubmit={(event) => void submit(event)}>
        <fieldset className="sidebar-agents">
          <legend>Agent</legend>
          {choices.map((one) => (
            <label key={one.name} data-usable={one.usable || undefined}>
              <input
                type="radio"
                name="agent"
                value={one.name}
                checked={one.name === chosen}
                disabled={!one.usable}
                autoFocus={one.name === chosen}
                onChange={() => setAgent(one.name)}
              />
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
            Add more agents in{" "}
            <button type="button" className="text-button" onClick={() => go("/settings/agents")}>
              Settings
            </button>
          </p>
        )}
        <label>
          Model
          <select value={model} onChange={(event) => setModel(event.target.value)}>
            <option value="">Default of the agent</option>
            {models.value?.models.map((one) => (
              <option key={one.name} value={one.name}>
                {one.name}
                {one.model && ` (${one.model})`}
                {one.problem && " (not available now)"}
              </option>
            ))}
            <option value={OTHER}>Another model…</option>
          </select>
        </label>
        {model === OTHER && (
          <input
            aria-label="Model name"
            placeholder="Name at the provider"
            maxLength={200}
            required
            autoFocus
            value={other}
            onChange={(event) => setOther(event.target.value)}
          />
        )}
        {models.value?.models.length === 0 && (
          <p className="quiet small-print">
            No model is connected yet.{" "}
            <button
              type="button"
              className="text-button"
              onClick={() => {
                onClose();
                connectModel();
              }}
            >
              Connect a model
            </button>
          </p>
        )}
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary" disabled={busy || chosen === null}>
            Start session
          </button>
        </div>
      </form>
    </Dialog>
  );
}
