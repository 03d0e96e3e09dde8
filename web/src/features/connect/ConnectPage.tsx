import { useCallback, useEffect, useState } from "react";
import { request, RequestFailed, type Problem } from "../../client/http";
import { Notice } from "../../ui/Notice";
import { lastUseOf, leftOf, shownRows, TRY, UNPACK, type SshCredential, type SshDoor } from "./connect.logic";
import { makeAndDownload } from "./makeKey";

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

  return (
    <main className="page">
      <header>
        <a href="/" aria-label="Back to your Freehold">
          <img src="/icon.svg" alt="" width="32" height="32" />
        </a>
        <h1>Connect with SSH</h1>
      </header>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: () => void look() }} />}
      {found === null && !problem && <p className="quiet" role="status">Looking…</p>}
      {found !== null && !found.door.enabled && (
        <p>
          SSH is switched off. Set <code>ssh.enabled = true</code> in freehold.toml and restart.
        </p>
      )}
      {found !== null && found.door.enabled && (
        <div className={problem ? "stale" : undefined}>
          <p>
            <code>ssh</code>, <code>scp</code>, <code>rsync</code>, <code>git</code> and editors work against the computer. The
            key is made in this browser, ends within a day, and ends with this sign-in. From a terminal on this machine,{" "}
            <code>freehold ssh</code> does all of it.
          </p>
          <p>
            <button className="primary" disabled={busy} onClick={() => void make()}>
              Make a key
            </button>
          </p>
          {made !== null && (
            <section role="status" aria-label="How to use the key">
              <p>
                The key was downloaded, this once.
                {made === "there" && " This browser cannot make keys, so it was made by your Freehold, which has forgotten it."}
              </p>
              <p>
                <code>{UNPACK}</code>
              </p>
              <p>
                <code>{TRY}</code>
              </p>
            </section>
          )}
          <p className="quiet">
            {found.door.host} port {found.door.port}, host key <code>{found.door.fingerprint}</code>
            {found.door.connected === null ? "; the server does not answer now" : `; ${found.door.connected} connected`}
          </p>
          <h2>Keys</h2>
          {shownRows(found.rows, now).length === 0 && <p className="quiet">None yet.</p>}
          <ul className="components">
            {shownRows(found.rows, now).map((row) => (
              <li key={row.id}>
                <span className="name">{row.label || row.id}</span>
                {row.revoked ? (
                  <span className="quiet">revoked</span>
                ) : (
                  <button disabled={busy} aria-label={`Revoke ${row.label || row.id}`} onClick={() => void revoke(row)}>
                    Revoke
                  </button>
                )}
                <span className="quiet">
                  {leftOf(row.expires, now)}; {lastUseOf(row)}
                </span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </main>
  );
}
