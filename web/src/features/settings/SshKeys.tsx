import type { SshDoor } from "../../client/api";
import { request } from "../../client/http";
import { useAnswer, useNow } from "../../ui/answers";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { lastUseOf, leftOf, shownRows, type SshCredential } from "../connect/connect.logic";
import { go } from "../shell/route";

/** The keys that were given out for ssh; making one is on Connect. */
export function SshKeys() {
  const door = useAnswer<SshDoor>("/v1/ssh");
  const keys = useAnswer<SshCredential[]>("/v1/ssh/certificates");
  const toasts = useToasts();
  const now = useNow() * 1000;
  const living = keys.value === null ? [] : shownRows(keys.value, now).filter((row) => !row.revoked);

  async function revoke(row: SshCredential) {
    try {
      await request(`/v1/ssh/certificates/${encodeURIComponent(row.id)}`, { method: "DELETE" });
      toasts.done(`${row.label || row.id} is revoked`);
    } catch (error) {
      toasts.failed(error);
    }
    keys.reload();
    door.reload();
  }

  const problem = door.problem ?? keys.problem;
  return (
    <section aria-labelledby="ssh-keys">
      <div className="section-head">
        <h3 id="ssh-keys">SSH keys</h3>
        <button className="small" onClick={() => go("/connect")}>
          Make a key
        </button>
      </div>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: () => (door.reload(), keys.reload()) }} />}
      {door.value && !door.value.enabled && (
        <p className="empty">
          SSH is switched off. <code>ssh.enabled = true</code> in freehold.toml opens the side door.
        </p>
      )}
      {door.value?.enabled && living.length === 0 && <p className="empty">No key is valid now.</p>}
      {living.length > 0 && (
        <ul className="rows">
          {living.map((row) => (
            <li key={row.id}>
              <div className="grow">
                {row.label || row.id}
                <p className="quiet">
                  {leftOf(row.expires, now)} · {lastUseOf(row)}
                </p>
              </div>
              <button className="small" onClick={() => void revoke(row)} aria-label={`Revoke ${row.label || row.id}`}>
                Revoke
              </button>
            </li>
          ))}
        </ul>
      )}
      {door.value?.enabled && (
        <p className="quiet small-print">
          {door.value.connected === null
            ? "The ssh server does not answer now."
            : door.value.connected === 0
              ? "Nobody is connected now."
              : door.value.connected === 1
                ? "One connection is open now; revoking its key ends it."
                : `${door.value.connected} connections are open now; revoking a key ends those made with it.`}
        </p>
      )}
    </section>
  );
}
