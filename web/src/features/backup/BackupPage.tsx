import { useState } from "react";
import type { BackupStarted, BackupState, RequestBackup } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Facts } from "../../ui/Facts";
import { Notice } from "../../ui/Notice";
import { factsOf, headlineOf, problemsOf } from "./backup.logic";
import "./backup.css";

const POLL_INTERVAL = 3_000;

/** The state of the backups: the last one, whether it was read back, and the recovery key. */
export default function BackupPage() {
  const { value, problem, reload } = useResource<BackupState>("/v1/backup", { pollInterval: POLL_INTERVAL });
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const shown = failure ?? problem;

  function retry() {
    setFailure(null);
    reload();
  }

  async function start(body: RequestBackup) {
    setIsBusy(true);
    try {
      await request<BackupStarted>("/v1/backup/runs", { method: "POST", body });
      retry();
    } catch (error) {
      setFailure(problemOf(error));
    }
    setIsBusy(false);
  }

  return (
    <div className="column backup">
      <header className="head">
        <h1>Backups</h1>
        <p className="quiet">Everything of this Freehold, encrypted here and kept somewhere else.</p>
      </header>
      {shown && <Notice problem={shown} action={{ label: "Try again", run: retry }} />}
      {value === null && !shown && (
        <p className="quiet" role="status">
          Loading…
        </p>
      )}
      {value !== null && !value.enabled && (
        <p className="empty">
          Backups are off. To turn them on, set <code>to</code> in <code>[backup]</code> of freehold.toml, run{" "}
          <code>freehold backup key</code>, and restart Freehold.
        </p>
      )}
      {value?.enabled && (
        <BackupCard state={value} stale={problem !== null} busy={isBusy} onStart={(body) => void start(body)} />
      )}
    </div>
  );
}

interface BackupCardProps {
  state: BackupState;
  stale: boolean;
  busy: boolean;
  onStart: (body: RequestBackup) => void;
}

function BackupCard({ state, stale, busy, onStart }: BackupCardProps) {
  const headline = headlineOf(state);
  const blocked = busy || state.running !== null || state.recovery_key === null;
  return (
    <>
      <section className={`card backup-state${stale ? " stale" : ""}`} data-tone={headline.tone} aria-label="State">
        <div>
          <p className="backup-headline" role="status">
            {headline.text}
          </p>
          {state.trouble !== null && <p>{state.trouble}</p>}
          {state.recovery_key === null && (
            <p>
              In a terminal on this machine, run <code>freehold backup key</code>. It shows the key that opens the
              backups; it must not pass through a browser.
            </p>
          )}
        </div>
        <div className="answers">
          <button type="button" className="primary" disabled={blocked} onClick={() => onStart({ work: "now" })}>
            Back up now
          </button>
          <button type="button" disabled={blocked || state.last === null} onClick={() => onStart({ work: "verify" })}>
            Verify backups
          </button>
        </div>
      </section>
      <section className="card" aria-labelledby="backup-facts">
        <h2 id="backup-facts">Details</h2>
        <Facts facts={factsOf(state)} />
        {problemsOf(state).map((problem) => (
          <p key={problem} className="backup-problem">
            {problem}
          </p>
        ))}
        {state.last?.notes.map((note) => (
          <p key={note} className="quiet">
            Left out: {note}
          </p>
        ))}
      </section>
    </>
  );
}
