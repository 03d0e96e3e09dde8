import { useRef, useState } from "react";
import type { AgentOffer } from "../../../client/api";
import { request } from "../../../client/http";
import { Floating } from "../../../ui/Floating";
import { Icon } from "../../../ui/Icon";
import { useToasts } from "../../../ui/Toasts";
import { unhidden } from "../../../ui/unhidden";
import { choosables, chosenWords, type Choosable } from "./options.logic";

/** Mode, model and whatever else the agent lets be chosen, behind one small button. */
export function OptionsButton({ id, offer, onChosen }: { id: string; offer: AgentOffer | null; onChosen: () => void }) {
  const [busy, setBusy] = useState(false);
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const toasts = useToasts();
  const all = choosables(offer);
  if (all.length === 0) return null;

  async function choose(option: string, value: string | boolean) {
    setBusy(true);
    try {
      await request(`/v1/sessions/${encodeURIComponent(id)}/options`, { method: "POST", body: { id: option, value } });
    } catch (error) {
      toasts.failed(error);
    }
    setBusy(false);
    onChosen();
  }

  return (
    <>
      <button ref={button} type="button" className="small composer-options" aria-haspopup="dialog" aria-expanded={open} aria-label={`Options of the agent: ${unhidden(chosenWords(all))}`} title="Options of the agent" onClick={() => setOpen(!open)}>
        {busy ? <span className="spinner" aria-hidden="true" /> : <Icon name="settings" size={16} />}
        <span>{unhidden(chosenWords(all))}</span>
      </button>
      {open && (
        <Floating anchor={button} role="dialog" label="Options of the agent" className="menu options" side="above" align="start" onClose={() => setOpen(false)}>
          {all.map((one) => (
            <Option key={one.id} option={one} busy={busy} onChoose={(value) => void choose(one.id, value)} />
          ))}
          {busy && <p className="quiet">The agent is told; it starts for that if it does not run.</p>}
        </Floating>
      )}
    </>
  );
}

function Option({ option, busy, onChoose }: { option: Choosable; busy: boolean; onChoose: (value: string | boolean) => void }) {
  if (option.choices.length === 0)
    return (
      <label className="radio">
        <input type="checkbox" checked={option.value === true} disabled={busy} onChange={(event) => onChoose(event.target.checked)} />
        {unhidden(option.name)}
      </label>
    );
  const chosen = option.choices.find((choice) => choice.id === option.value);
  return (
    <label>
      {unhidden(option.name)}
      <select value={chosen?.id ?? ""} disabled={busy} onChange={(event) => onChoose(event.target.value)}>
        {chosen === undefined && (
          <option value="" disabled>
            As the agent has it
          </option>
        )}
        {option.choices.map((choice) => (
          <option key={choice.id} value={choice.id}>
            {unhidden(choice.name)}
          </option>
        ))}
      </select>
      {chosen?.description && <small className="quiet">{unhidden(chosen.description)}</small>}
    </label>
  );
}
