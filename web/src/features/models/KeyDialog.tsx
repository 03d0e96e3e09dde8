import { type FormEvent, useState } from "react";
import type { SetSecret } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";

/** Saves a key in the vault. It is never shown again. */
export function KeyDialog({
  name: given,
  onClose,
  onSaved,
}: {
  name: string | null;
  onClose: () => void;
  onSaved: (name: string) => void;
}) {
  const [name, setName] = useState(given ?? "");
  const [value, setValue] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);

  async function save(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    const body: SetSecret = { value: value.trim() };
    try {
      await request(`/v1/secrets/${encodeURIComponent(name.trim())}`, { method: "PUT", body });
      setValue("");
      onSaved(name.trim());
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  }

  return (
    <Dialog title={given === null ? "Add a key" : `Key ${given}`} onClose={onClose}>
      <form className="stack" autoComplete="off" onSubmit={(event) => void save(event)}>
        {problem && <Notice problem={problem} />}
        {given === null && (
          <label>
            Name
            <input
              required
              autoFocus
              maxLength={100}
              pattern="[A-Za-z0-9][A-Za-z0-9._\-]*"
              title="Letters, digits, dots, hyphens and underscores"
              placeholder="anthropic"
              value={name}
              onChange={(event) => setName(event.target.value)}
              autoCapitalize="off"
              autoComplete="off"
              spellCheck={false}
            />
          </label>
        )}
        <label>
          Value
          <input
            required
            autoFocus={given !== null}
            type="password"
            maxLength={65_536}
            value={value}
            onChange={(event) => setValue(event.target.value)}
            autoComplete="new-password"
            autoCapitalize="off"
            spellCheck={false}
            data-1p-ignore=""
            data-lpignore="true"
          />
        </label>
        <p className="quiet small-print">
          Stored encrypted on this machine and added to requests outside of the computer. It is never shown again. In
          freehold.toml it is called <code>secret:{name.trim() || "name"}</code>.
        </p>
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary" disabled={busy || value.trim() === ""}>
            Save key
          </button>
        </div>
      </form>
    </Dialog>
  );
}
