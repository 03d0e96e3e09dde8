import { useCallback, useEffect, useState } from "react";
import { request, RequestFailed, type Problem } from "../../client/http";
import { Notice } from "../../ui/Notice";
import { lastUseOf, leftOf, shownRows, TRY, UNPACK, type SshCredential, type SshDoor } from "./connect.logic";
import { go } from "../shell/route";
import { makeAndDownload } from "./makeKey";
import "./connect.css";

const LOOK_EVERY = 5_000;

interface Found {
  door: SshDoor;
  rows: SshCredential[];
}

function problemOf(error: unknown): Problem {
  if (error instanceof RequestFailed) return error.problem;
  return { code: "connect.failed", message: "That did not work.", hint: "Try again in a moment." };
}

/** The way in with ssh: a key that is made here and ends by itself. */
export function ConnectPage() {
  const [found, setFound] = useState<Found | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [made, setMade] = useState<"here" | "there" | null>(null);
  const [busy, setBusy] = useState(false);
  const [now, setNow] = useState(() => Date.now());

  const look = useCallback(async () => {
    try {
      const [door, rows] = await Promise.all([
        request<SshDoor>("/v1/ssh"),
        request<SshCredential[]>("/v1/ssh/certificates"),
      ]);
      setFound({ door, rows });
      setProblem(null);
    } catch (error) {
      setProblem(problemOf(error));
    }
  }, []);

  useEffect(() => {
    void look();
    const looking = setInterval(() => void look(), LOOK_EVERY);
    const ticking = setInterval(() => setNow(Date.now()), 1_000);
    return () => {
      clearInterval(looking);
      clearInterval(ticking);
    };
  }, [look]);

  async function run(work: () => Promise<void>) {
    setBusy(true);
    try {
      await work();
      await look();
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setBusy(false);
    }
  }

  const make = () => run(async () => setMade(await makeAndDownload("this browser")));
  const revoke = (row: SshCredential) =>
    run(async () => {
      await request(`/v1/ssh/certificates/${encodeURIComponent(row.id)}`, { method: "DELETE" });
    });

  const keys = found === null ? [] : shownRows(found.rows, now);
  return (
    <div className="column">
      <header className="head">
        <h1>Connect</h1>
        <p className="quiet">Your own terminal and editor, in the computer.</p>
      </header>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: () => void look() }} />}
      {found === null && !problem && (
        <p className="quiet" role="status">
          Looking…
        </p>
      )}
      {found !== null && !found.door.enabled && (
        <p className="empty">
          SSH is switched off. Set <code>ssh.enabled = true</code> in freehold.toml and restart.
        </p>
      )}
      {found !== null && found.door.enabled && (
        <>
          <section className={`card connect${problem ? " stale" : ""}`} aria-labelledby="ssh">
            <h2 id="ssh">SSH</h2>
            <p>
              <code>ssh</code>, <code>scp</code>, <code>rsync</code>, <code>git</code> and editors work against the computer. The key is
              made in this browser, ends within a day, and ends with this sign-in. From a terminal on this machine,{" "}
              <code>freehold ssh</code> does all of it.
            </p>
            <button className="primary" disabled={busy} onClick={() => void make()}>
              Make a key
            </button>
            {made !== null && (
              <div role="status" aria-label="How to use the key">
                <p>
                  The key was downloaded, this once.
                  {made === "there" && " This browser cannot make keys, so it was made by your Freehold, which has forgotten it."}
                </p>
                <pre className="lines">
                  {UNPACK}
                  {"\n"}
                  {TRY}
                </pre>
                <p className="quiet">
                  VS Code: install Remote - SSH, add <code>Include ~/.ssh/freehold.conf</code> to <code>~/.ssh/config</code>, and connect to{" "}
                  <code>freehold</code>.
                </p>
              </div>
            )}
            <p className="quiet">
              {found.door.host} port {found.door.port}, host key <code className="path">{found.door.fingerprint}</code>
              {found.door.connected === null ? "; the server does not answer now" : `; ${found.door.connected} connected`}
            </p>
          </section>
          <section aria-labelledby="ssh-keys">
            <h2 id="ssh-keys">Keys</h2>
            {keys.length === 0 && <p className="empty">None yet.</p>}
            {keys.length > 0 && (
              <ul className="rows">
                {keys.map((row) => (
                  <li key={row.id}>
                    <div className="grow">
                      {row.label || row.id}
                      <p className="quiet">
                        {leftOf(row.expires, now)} · {lastUseOf(row)}
                      </p>
                    </div>
                    {row.revoked ? (
                      <span className="chip">revoked</span>
                    ) : (
                      <button className="small" disabled={busy} aria-label={`Revoke ${row.label || row.id}`} onClick={() => void revoke(row)}>
                        Revoke
                      </button>
                    )}
                  </li>
                ))}
              </ul>
            )}
          </section>
        </>
      )}
      <p className="quiet connect-more">
        Signed-in browsers and API tokens are in{" "}
        <button className="text-button" onClick={() => go("/settings/access")}>
          Settings, Access
        </button>
      </p>
    </div>
  );
}
