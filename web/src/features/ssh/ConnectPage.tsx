import { useEffect, useState } from "react";
import type { SshCredential, SshServer } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { countOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { go } from "../../ui/route";
import { CONNECT_COMMAND, lastUse, timeLeft, UNPACK_COMMAND, visibleRows } from "./ssh.logic";
import { createAndDownloadKey } from "./sshKeyDownload";
import "./ssh.css";

const POLL_INTERVAL = 5_000;

/** SSH access: creates keys that expire within a day, and lists them. */
export default function ConnectPage() {
  const server = useResource<SshServer>("/v1/ssh", { pollInterval: POLL_INTERVAL });
  const credentials = useResource<SshCredential[]>("/v1/ssh/certificates", { pollInterval: POLL_INTERVAL });
  const [failure, setFailure] = useState<Problem | null>(null);
  const [createdBy, setCreatedBy] = useState<"browser" | "server" | null>(null);
  const [busy, setBusy] = useState(false);
  const now = useClock();
  const problem = failure ?? server.problem ?? credentials.problem;

  function reload() {
    setFailure(null);
    server.reload();
    credentials.reload();
  }

  async function run(work: () => Promise<void>) {
    setBusy(true);
    try {
      await work();
      reload();
    } catch (error) {
      setFailure(problemOf(error));
    }
    setBusy(false);
  }

  const create = () => run(async () => setCreatedBy(await createAndDownloadKey("this browser")));
  const revoke = (row: SshCredential) =>
    run(async () => {
      await request(`/v1/ssh/certificates/${encodeURIComponent(row.id)}`, { method: "DELETE" });
    });

  return (
    <div className="column">
      <header className="head">
        <h1>Connect</h1>
        <p className="quiet">Use your own terminal and editor with the computer.</p>
      </header>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {server.value === null && !problem && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {server.value !== null && !server.value.enabled && (
        <p className="empty">
          SSH access is off. To turn it on, set <code>ssh.enabled = true</code> in freehold.toml and restart Freehold.
        </p>
      )}
      {server.value?.enabled && (
        <>
          <ServerCard
            server={server.value}
            stale={problem !== null}
            busy={busy}
            createdBy={createdBy}
            onCreate={() => void create()}
          />
          <KeyList
            rows={visibleRows(credentials.value ?? [], now)}
            now={now}
            busy={busy}
            onRevoke={(row) => void revoke(row)}
          />
        </>
      )}
      <p className="quiet ssh-more">
        Sign-ins and API tokens are in{" "}
        <button type="button" className="text-button" onClick={() => go("/settings/access")}>
          Settings, Access
        </button>
      </p>
    </div>
  );
}

/** The present in milliseconds, updated every second. */
function useClock(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

interface ServerCardProps {
  server: SshServer;
  stale: boolean;
  busy: boolean;
  createdBy: "browser" | "server" | null;
  onCreate: () => void;
}

function ServerCard({ server, stale, busy, createdBy, onCreate }: ServerCardProps) {
  return (
    <section className={`card ssh${stale ? " stale" : ""}`} aria-labelledby="ssh">
      <h2 id="ssh">SSH</h2>
      <p>
        <code>ssh</code>, <code>scp</code>, <code>rsync</code>, <code>git</code> and editors work with the computer. The
        key is created in this browser. It expires within a day, and when this browser is signed out. In a terminal on
        this machine, use <code>freehold ssh</code> instead.
      </p>
      <button type="button" className="primary" disabled={busy} onClick={onCreate}>
        Create a key
      </button>
      {createdBy !== null && (
        <div role="status" aria-label="How to use the key">
          <p>
            The key was downloaded. It cannot be downloaded again.
            {createdBy === "server" &&
              " This browser cannot create keys, so Freehold created it. It does not store the private key."}
          </p>
          <pre className="ssh-commands">
            {UNPACK_COMMAND}
            {"\n"}
            {CONNECT_COMMAND}
          </pre>
          <p className="quiet">
            VS Code: install Remote - SSH, add <code>Include ~/.ssh/freehold.conf</code> to <code>~/.ssh/config</code>,
            and connect to <code>freehold</code>.
          </p>
        </div>
      )}
      <p className="quiet">
        {server.host} port {server.port}, host key <code className="path">{server.fingerprint}</code>,{" "}
        {server.connected === null ? "the server does not answer now" : countOf(server.connected, "open connection")}
      </p>
    </section>
  );
}

interface KeyListProps {
  rows: readonly SshCredential[];
  now: number;
  busy: boolean;
  onRevoke: (row: SshCredential) => void;
}

function KeyList({ rows, now, busy, onRevoke }: KeyListProps) {
  return (
    <section aria-labelledby="ssh-keys">
      <h2 id="ssh-keys">Keys</h2>
      {rows.length === 0 && <p className="empty">No keys yet.</p>}
      {rows.length > 0 && (
        <ul className="rows">
          {rows.map((row) => (
            <li key={row.id}>
              <div className="grow">
                {row.label || row.id}
                <p className="quiet">
                  {timeLeft(row.expires, now)} · {lastUse(row)}
                </p>
              </div>
              {row.revoked ? (
                <span className="chip">revoked</span>
              ) : (
                <button
                  type="button"
                  className="small"
                  disabled={busy}
                  aria-label={`Revoke ${row.label || row.id}`}
                  onClick={() => onRevoke(row)}
                >
                  Revoke
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
