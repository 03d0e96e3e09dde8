import { useRef, useState } from "react";
import type { AgentOffer, ChangeSession, ModelTrial, SessionInfo } from "../../../client/api";
import { request } from "../../../client/http";
import { Icon } from "../../../ui/Icon";
import { Popup } from "../../../ui/Popup";
import { useToasts } from "../../../ui/Toasts";
import { visibleText } from "../../../ui/visibleText";
import { useSessionList } from "../../session-list/SessionListProvider";
import { useSetup } from "../setup/SetupProvider";
import { modelChoices, modelLabel, providerOf, typedModel } from "./modelChoice.logic";

interface ModelButtonProps {
  session: SessionInfo;
  offer: AgentOffer | null;
  busy: boolean;
  onChanged: () => void;
}

/** A button that shows the agent and the model of a session, and opens the choice of another. */
export function ModelButton({ session, offer, busy: isWorking, onChanged }: ModelButtonProps) {
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const toasts = useToasts();
  const { receive } = useSessionList();
  const { agents, models } = useSetup();
  const providers = models?.models ?? [];
  const agent = agents?.find((one) => one.name === session.agent);
  const model = modelLabel(session, agent, providers, offer);
  const label = [agent?.title ?? session.agent, model].filter(Boolean).join(" · ");

  async function change(body: ChangeSession) {
    setBusy(true);
    try {
      receive(await request<SessionInfo>(`/v1/sessions/${encodeURIComponent(session.id)}`, { method: "PATCH", body }));
    } catch (error) {
      toasts.failed(error);
    }
    setBusy(false);
    onChanged();
  }

  return (
    <>
      <button
        ref={button}
        type="button"
        className="small composer-options-button"
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-label={`Agent and model: ${visibleText(label)}`}
        title="Agent and model"
        onClick={() => setOpen(!open)}
      >
        {busy ? <span className="spinner" aria-hidden="true" /> : <Icon name="robot" size={16} />}
        <span>{visibleText(label)}</span>
      </button>
      {open && (
        <Popup
          anchor={button}
          role="dialog"
          label="Agent and model"
          className="menu composer-options"
          side="above"
          align="start"
          onClose={() => setOpen(false)}
        >
          <label>
            Agent
            <select
              value={session.agent}
              disabled={busy || session.seq > 0}
              onChange={(event) => void change({ agent: event.target.value, model: "" })}
            >
              {agents
                ?.filter((one) => one.problem === null || one.name === session.agent)
                .map((one) => (
                  <option key={one.name} value={one.name}>
                    {visibleText(one.title)}
                  </option>
                ))}
            </select>
          </label>
          {session.seq > 0 && <p className="quiet">Start a new session to use another agent.</p>}
          {offer?.chosen_model && (
            <p className="quiet">
              {visibleText(offer.chosen_model)} was chosen in the options of the agent. A model chosen here replaces it.
            </p>
          )}
          <ModelFields
            key={`${session.agent} ${session.model}`}
            session={session}
            choices={modelChoices(agent, providers)}
            provider={providerOf(session.model, providers)}
            usual={agent?.model ?? null}
            disabled={busy || isWorking}
            onChoose={(model) => void change({ model })}
          />
          {isWorking && <p className="quiet">The model can be changed when the agent is done.</p>}
        </Popup>
      )}
    </>
  );
}

interface ModelFieldsProps {
  session: SessionInfo;
  choices: ReturnType<typeof modelChoices>;
  /** The chosen provider; null for the agent's own. */
  provider: string | null;
  /** The provider that the agent uses when none is chosen. */
  usual: string | null;
  disabled: boolean;
  onChoose: (model: string) => void;
}

function ModelFields({ session, choices, provider, usual, disabled, onChoose }: ModelFieldsProps) {
  const { connectModel } = useSetup();
  const asked = provider ?? usual;
  const [names, setNames] = useState<readonly string[]>([]);
  const stored = session.model ?? "";
  const current = provider === null ? stored : stored.slice(provider.length + 1);
  const [typed, setTyped] = useState(current);

  /** The names are suggestions only: when the provider does not answer there are none. */
  function suggest() {
    if (names.length > 0 || asked === null) return;
    request<ModelTrial>(`/v1/models/${encodeURIComponent(asked)}/test`, { method: "POST" })
      .then((trial) => setNames(trial.models))
      .catch(() => undefined);
  }

  return (
    <>
      <label>
        Provider
        <select value={provider ?? ""} disabled={disabled} onChange={(event) => onChoose(event.target.value)}>
          <option value="">Default of the agent{usual === null ? "" : ` (${usual})`}</option>
          {choices.map((one) => (
            <option key={one.value} value={one.value}>
              {visibleText(one.label)}
            </option>
          ))}
        </select>
      </label>
      <label>
        Model
        <input
          list="composer-models"
          placeholder="Default of the provider"
          maxLength={150}
          value={typed}
          disabled={disabled || asked === null}
          onFocus={suggest}
          onChange={(event) => setTyped(event.target.value)}
          onBlur={() => {
            if (typed.trim() !== current) onChoose(typed.trim() === "" ? (provider ?? "") : typedModel(asked, typed));
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") {
              event.preventDefault();
              event.currentTarget.blur();
            }
          }}
          autoCapitalize="off"
          spellCheck={false}
        />
        <datalist id="composer-models">
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </label>
      <p className="quiet">It is used from the next message on.</p>
      <p>
        <button type="button" className="text-button" onClick={connectModel}>
          Connect a model
        </button>
      </p>
    </>
  );
}
