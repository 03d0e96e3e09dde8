import { useRef, useState } from "react";
import type { AgentOffer } from "../../../client/api";
import { request } from "../../../client/http";
import { Icon } from "../../../ui/Icon";
import { Popup } from "../../../ui/Popup";
import { useToasts } from "../../../ui/Toasts";
import { visibleText } from "../../../ui/visibleText";
import { type AgentOption, agentOptions, optionsLabel } from "./options.logic";

/** A button that opens the options of the agent, such as its mode and model. */
export function OptionsButton({
  id,
  offer,
  onChanged,
}: {
  id: string;
  offer: AgentOffer | null;
  onChanged: () => void;
}) {
  const [busy, setBusy] = useState(false);
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const toasts = useToasts();
  const all = agentOptions(offer);
  if (all.length === 0) return null;

  async function choose(option: string, value: string | boolean) {
    setBusy(true);
    try {
      await request(`/v1/sessions/${encodeURIComponent(id)}/options`, { method: "POST", body: { id: option, value } });
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
        aria-label={`Agent options: ${visibleText(optionsLabel(all))}`}
        title="Agent options"
        onClick={() => setOpen(!open)}
      >
        {busy ? <span className="spinner" aria-hidden="true" /> : <Icon name="settings" size={16} />}
        <span>{visibleText(optionsLabel(all))}</span>
      </button>
      {open && (
        <Popup
          anchor={button}
          role="dialog"
          label="Agent options"
          className="menu composer-options"
          side="above"
          align="start"
          onClose={() => setOpen(false)}
        >
          {all.map((one) => (
            <Option key={one.id} option={one} busy={busy} onChoose={(value) => void choose(one.id, value)} />
          ))}
          {busy && <p className="quiet">Saving. The agent is started if it is not running.</p>}
        </Popup>
      )}
    </>
  );
}

function Option({
  option,
  busy,
  onChoose,
}: {
  option: AgentOption;
  busy: boolean;
  onChoose: (value: string | boolean) => void;
}) {
  if (option.choices.length === 0)
    return (
      <label className="radio">
        <input
          type="checkbox"
          checked={option.value === true}
          disabled={busy}
          onChange={(event) => onChoose(event.target.checked)}
        />
        {visibleText(option.name)}
      </label>
    );
  const chosen = option.choices.find((choice) => choice.id === option.value);
  return (
    <label>
      {visibleText(option.name)}
      <select value={chosen?.id ?? ""} disabled={busy} onChange={(event) => onChoose(event.target.value)}>
        {chosen === undefined && (
          <option value="" disabled>
            Default of the agent
          </option>
        )}
        {option.choices.map((choice) => (
          <option key={choice.id} value={choice.id}>
            {visibleText(choice.name)}
          </option>
        ))}
      </select>
      {chosen?.description && <small className="quiet">{visibleText(chosen.description)}</small>}
    </label>
  );
}
