import type { SshCredential, SshServer } from "../../client/api";
import { request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Notice } from "../../ui/Notice";
import { go } from "../../ui/route";
import { useToasts } from "../../ui/Toasts";
import { useNow } from "../../ui/useNow";
import { lastUse, timeLeft, visibleRows } from "../ssh/ssh.logic";

/** The SSH keys that are valid now. New ones are created on the page Connect. */
export function SshKeys() {
  const server = useResource<SshServer>("/v1/ssh");
  const keys = useResource<SshCredential[]>("/v1/ssh/certificates");
  const toasts = useToasts();
  const now = useNow() * 1000;
  const valid = keys.value === null ? [] : visibleRows(keys.value, now).filter((row) => !row.revoked);

  const reload = () => {
    server.reload();
    keys.reload();
  };

  async function revoke(row: SshCredential) {
    try {
      await request(`/v1/ssh/certificates/${encodeURIComponent(row.id)}`, { method: "DELETE" });
      toasts.done(`${row.label || row.id} was revoked`);
    } catch (error) {
      toasts.failed(error);
    }
    reload();
  }

  const problem = server.problem ?? keys.problem;
  return (
    <section aria-labelledby="ssh-keys">
      <div className="section-head">
        <h3 id="ssh-keys">SSH keys</h3>
        <button className="small" onClick={() => go("/connect")}>
          Create a key
        </button>
      </div>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {server.value && !server.value.enabled && (
        <p className="empty">
          SSH access is off. To turn it on, set <code>ssh.enabled = true</code> in freehold.toml.
        </p>
      )}
      {server.value?.enabled && valid.length === 0 && <p className="empty">No valid keys.</p>}
      {valid.length > 0 && (
        <ul className="rows">
          {valid.map((row) => (
            <li key={row.id}>
              <div className="grow">
                {row.label || row.id}
                <p className="quiet">
                  {timeLeft(row.expires, now)} · {lastUse(row)}
                </p>
              </div>
              <button className="small" onClick={() => void revoke(row)} aria-label={`Revoke ${row.label || row.id}`}>
                Revoke
              </button>
            </li>
          ))}
        </ul>
      )}
      {server.value?.enabled && (
        <p className="quiet small-print">
          {server.value.connected === null
            ? "The SSH server does not answer now."
            : server.value.connected === 0
              ? "No open connections."
              : server.value.connected === 1
                ? "1 open connection. Revoking its key ends it."
                : `${server.value.connected} open connections. Revoking a key ends its connections.`}
        </p>
      )}
    </section>
  );
}
