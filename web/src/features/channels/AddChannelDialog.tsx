import { type FormEvent, useState } from "react";
import type { AddChannel } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { type AddableKind, FIELDS, KIND_TITLES, newChannel } from "./channels.logic";

const KINDS = Object.keys(FIELDS) as AddableKind[];

export function AddChannelDialog({ onClose }: { onClose: () => void }) {
  const [kind, setKind] = useState<AddableKind>("telegram");
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<Problem | null>(null);

  async function add(event: FormEvent) {
    event.preventDefault();
    const body: AddChannel = newChannel(kind, typed);
    try {
      await request("/v1/channels", { method: "POST", body });
      onClose();
    } catch (error) {
      setProblem(problemOf(error));
    }
  }

  return (
    <Dialog title="Add a channel" onClose={onClose}>
      <form className="stack" onSubmit={(event) => void add(event)}>
        {problem && <Notice problem={problem} />}
        <label>
          Kind
          <select value={kind} onChange={(event) => setKind(event.target.value as AddableKind)} autoFocus>
            {KINDS.map((one) => (
              <option key={one} value={one}>
                {KIND_TITLES[one]}
              </option>
            ))}
          </select>
        </label>
        {FIELDS[kind].map(({ name, label, placeholder, secret, optional }) => (
          <label key={name}>
            {label}
            <input
              type={secret ? "password" : "text"}
              autoComplete="off"
              required={!optional}
              maxLength={400}
              placeholder={placeholder}
              value={typed[name] ?? ""}
              onChange={(event) => setTyped({ ...typed, [name]: event.target.value })}
            />
          </label>
        ))}
        {kind === "nostr" && <p>It uses the key and the relays of this Freehold: the mesh must be on.</p>}
        <p className="quiet">Nothing is sent until you have paired it. Secrets are kept in the vault.</p>
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary">
            Add channel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
