import { useState, type FormEvent } from "react";
import type { MadeToken, NewToken, TokenRow } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { useAnswer, useNow } from "../../ui/answers";
import { Dialog } from "../../ui/Dialog";
import { ago } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";

type Scope = NewToken["scopes"][number];

const SCOPES: readonly { scope: Scope; means: string }[] = [
  { scope: "read", means: "see sessions, history and health" },
  { scope: "prompt", means: "talk to agents" },
  { scope: "files", means: "read and write files" },
  { scope: "terminal", means: "use terminals" },
  { scope: "history", means: "undo, redo and restore" },
  { scope: "admin", means: "everything else" },
];

const seconds = (at: string): number => new Date(at).getTime() / 1000;

export function Tokens() {
  const { value, problem, reload } = useAnswer<TokenRow[]>("/v1/tokens");
  const [making, setMaking] = useState(false);
  const toasts = useToasts();
  const now = useNow();

  async function revoke(name: string) {
    try {
      await request(`/v1/tokens/${encodeURIComponent(name)}`, { method: "DELETE" });
      toasts.done(`${name} is revoked`);
    } catch (error) {
      toasts.failed(error);
    }
    reload();
  }

  return (
    <section aria-labelledby="tokens">
      <div className="section-head">
        <h3 id="tokens">API tokens</h3>
        <button className="small" onClick={() => setMaking(true)}>
          New token
        </button>
      </div>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {value?.length === 0 && <p className="empty">No tokens. Programs that talk to this Freehold need one.</p>}
      {value && value.length > 0 && (
        <ul className="rows">
          {value.map((row) => (
            <li key={row.name}>
              <div className="grow">
                {row.name}
                <p className="quiet">
                  {row.scopes.join(", ")} · {row.used ? `used ${ago(seconds(row.used), now)}` : "never used"} ·{" "}
                  {row.expires ? `ends ${new Date(row.expires).toLocaleDateString()}` : "never ends"}
                </p>
              </div>
              <button className="small" onClick={() => void revoke(row.name)} aria-label={`Revoke ${row.name}`}>
                Revoke
              </button>
            </li>
          ))}
        </ul>
      )}
      {making && (
        <MakeToken
          onClose={() => {
            setMaking(false);
            reload();
          }}
        />
      )}
    </section>
  );
}

function MakeToken({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<Scope[]>(["read"]);
  const [days, setDays] = useState("30");
  const [made, setMade] = useState<MadeToken | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [copied, setCopied] = useState(false);

  async function make(event: FormEvent) {
    event.preventDefault();
    const body: NewToken = { name: name.trim(), scopes, days: days === "" ? null : Number(days) };
    try {
      setMade(await request<MadeToken>("/v1/tokens", { method: "POST", body }));
    } catch (error) {
      setProblem(problemOf(error));
    }
  }

  if (made !== null) {
    return (
      <Dialog title={`Token ${made.name}`} onClose={onClose}>
        <p>This is the only time it is shown.</p>
        <code className="secret">{made.secret}</code>
        <div className="dialog-foot">
          <button onClick={() => void navigator.clipboard.writeText(made.secret).then(() => setCopied(true))}>{copied ? "Copied" : "Copy"}</button>
          <button className="primary" onClick={onClose}>
            Done
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title="New token" onClose={onClose}>
      <form className="stack" onSubmit={(event) => void make(event)}>
        {problem && <Notice problem={problem} />}
        <label>
          Name
          <input required maxLength={40} value={name} onChange={(event) => setName(event.target.value)} placeholder="laptop" autoFocus />
        </label>
        <fieldset className="scopes">
          <legend>It may</legend>
          {SCOPES.map(({ scope, means }) => (
            <label key={scope} className="radio">
              <input
                type="checkbox"
                checked={scopes.includes(scope)}
                onChange={(event) => setScopes(event.target.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))}
              />
              <span>
                <strong>{scope}</strong> <span className="quiet">{means}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <label>
          Ends after
          <select value={days} onChange={(event) => setDays(event.target.value)}>
            <option value="1">a day</option>
            <option value="30">30 days</option>
            <option value="366">a year</option>
            <option value="">never</option>
          </select>
        </label>
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary" disabled={scopes.length === 0}>
            Make token
          </button>
        </div>
      </form>
    </Dialog>
  );
}
