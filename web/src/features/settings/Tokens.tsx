import { type FormEvent, useState } from "react";
import type { CreatedToken, NewToken, TokenInfo } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Dialog } from "../../ui/Dialog";
import { formatAge, secondsOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { useNow } from "../../ui/useNow";

type Scope = NewToken["scopes"][number];

const SCOPES: readonly { scope: Scope; allows: string }[] = [
  { scope: "read", allows: "read the timeline, health and lists, but no contents" },
  { scope: "prompt", allows: "read conversations and send prompts to agents" },
  { scope: "files", allows: "read and write files" },
  { scope: "terminal", allows: "use terminals" },
  { scope: "history", allows: "undo, redo and restore" },
  { scope: "beads", allows: "read and change work items" },
  { scope: "pods", allows: "read and change personal documents" },
  { scope: "memory", allows: "read, store and change what is remembered" },
  { scope: "events", allows: "read and publish events" },
  { scope: "orchestrator", allows: "see and end runs; begin them with prompt" },
  { scope: "routines", allows: "see and pause routines and workflows; add and run them with prompt or terminal" },
  { scope: "admin", allows: "change settings, sign-ins and tokens" },
];

/** The API tokens. */
export function Tokens() {
  const { value, problem, reload } = useResource<TokenInfo[]>("/v1/tokens");
  const [isCreating, setIsCreating] = useState(false);
  const toasts = useToasts();
  const now = useNow();

  async function revoke(name: string) {
    try {
      await request(`/v1/tokens/${encodeURIComponent(name)}`, { method: "DELETE" });
      toasts.done(`${name} was revoked`);
    } catch (error) {
      toasts.failed(error);
    }
    reload();
  }

  return (
    <section aria-labelledby="tokens">
      <div className="section-head">
        <h3 id="tokens">API tokens</h3>
        <button className="small" onClick={() => setIsCreating(true)}>
          Create a token
        </button>
      </div>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {value?.length === 0 && (
        <p className="empty">No tokens yet. Programs need one to use the API of this Freehold.</p>
      )}
      {value && value.length > 0 && (
        <ul className="rows">
          {value.map((row) => (
            <li key={row.name}>
              <div className="grow">
                {row.name}
                <p className="quiet">
                  {row.scopes.join(", ")} · {row.used ? `used ${formatAge(secondsOf(row.used), now)}` : "never used"} ·{" "}
                  {row.expires ? `expires ${new Date(row.expires).toLocaleDateString()}` : "never expires"}
                </p>
              </div>
              <button className="small" onClick={() => void revoke(row.name)} aria-label={`Revoke ${row.name}`}>
                Revoke
              </button>
            </li>
          ))}
        </ul>
      )}
      {isCreating && (
        <TokenDialog
          onClose={() => {
            setIsCreating(false);
            reload();
          }}
        />
      )}
    </section>
  );
}

function TokenDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<Scope[]>(["read"]);
  const [days, setDays] = useState("30");
  const [token, setToken] = useState<CreatedToken | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [copied, setCopied] = useState(false);

  async function create(event: FormEvent) {
    event.preventDefault();
    const body: NewToken = { name: name.trim(), scopes, days: days === "" ? null : Number(days) };
    try {
      setToken(await request<CreatedToken>("/v1/tokens", { method: "POST", body }));
    } catch (error) {
      setProblem(problemOf(error));
    }
  }

  if (token !== null) {
    return (
      <Dialog title={`Token ${token.name}`} onClose={onClose}>
        <p>Copy it now. It is not shown again.</p>
        <code className="settings-secret">{token.secret}</code>
        <div className="dialog-foot">
          <button onClick={() => void navigator.clipboard.writeText(token.secret).then(() => setCopied(true))}>
            {copied ? "Copied" : "Copy"}
          </button>
          <button className="primary" onClick={onClose}>
            Done
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title="Create a token" onClose={onClose}>
      <form className="stack" onSubmit={(event) => void create(event)}>
        {problem && <Notice problem={problem} />}
        <label>
          Name
          <input
            required
            maxLength={40}
            value={name}
            onChange={(event) => setName(event.target.value)}
            placeholder="laptop"
            autoFocus
          />
        </label>
        <fieldset className="settings-scopes">
          <legend>Scopes</legend>
          {SCOPES.map(({ scope, allows }) => (
            <label key={scope} className="radio">
              <input
                type="checkbox"
                checked={scopes.includes(scope)}
                onChange={(event) =>
                  setScopes(event.target.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))
                }
              />
              <span>
                <strong>{scope}</strong> <span className="quiet">{allows}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <label>
          Expires after
          <select value={days} onChange={(event) => setDays(event.target.value)}>
            <option value="1">1 day</option>
            <option value="30">30 days</option>
            <option value="366">1 year</option>
            <option value="">never</option>
          </select>
        </label>
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary" disabled={scopes.length === 0}>
            Create token
          </button>
        </div>
      </form>
    </Dialog>
  );
}
