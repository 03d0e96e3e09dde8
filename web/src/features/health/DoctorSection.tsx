import { useState } from "react";
import type { DoctorReport, DoctorRun, DoctorState, EscapeAttempt, StartDoctor } from "../../client/api";
import { request } from "../../client/http";
import { RELOAD, useResource } from "../../data/resource";
import { Facts } from "../../ui/Facts";
import { formatAge, formatDateTime } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { useNow } from "../../ui/useNow";
import { headlineOf, readProgress, sortAttempts, withProgress } from "./doctor.logic";
import "./health.css";

/** The result of the last isolation check, and the button that starts one. */
export function DoctorSection() {
  const { value, problem, reload, set } = useResource<DoctorState>("/v1/doctor", {
    topic: "doctor",
    concerns: (event) => readProgress(event) !== null,
    apply: (state, event) => {
      const progress = readProgress(event);
      return progress === null ? state : (withProgress(state, progress) ?? RELOAD);
    },
  });
  const [busy, setBusy] = useState(false);
  const toasts = useToasts();

  async function send(method: "POST" | "DELETE", body?: StartDoctor) {
    setBusy(true);
    try {
      set(await request<DoctorState>("/v1/doctor", body === undefined ? { method } : { method, body }));
    } catch (error) {
      toasts.failed(error);
      reload();
    }
    setBusy(false);
  }

  const running = value?.running ?? null;
  const headline = headlineOf(value?.last ?? null);
  return (
    <>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {value && (
        <section
          className="card health-verdict"
          data-tone={running === null ? headline.tone : "amber"}
          aria-label="Result"
        >
          <div className="grow">
            <p className="health-verdict-text" role="status">
              {running === null ? headline.text : "The isolation check is running."}
            </p>
            {running === null ? (
              <LastCheck report={value.last} />
            ) : (
              <p className="quiet">Freehold works as usual meanwhile.</p>
            )}
          </div>
          {running === null ? (
            <div className="answers">
              <button className="primary" disabled={busy} onClick={() => void send("POST", { quick: false })}>
                Run the full check
              </button>
              <button
                disabled={busy}
                title="Leaves out the attempts that use up memory, disk and processes"
                onClick={() => void send("POST", { quick: true })}
              >
                Run the quick check
              </button>
            </div>
          ) : (
            <button disabled={busy} onClick={() => void send("DELETE")}>
              Stop the check
            </button>
          )}
        </section>
      )}
      {running !== null && <Progress running={running} />}
      {running === null && value?.last && <Report report={value.last} />}
      {running === null && value?.last === null && (
        <p className="quiet small-print">
          The check starts temporary computers with the same isolation as yours and really tries to escape from them. It
          takes about half a minute. Freehold works as usual meanwhile.
        </p>
      )}
    </>
  );
}

function LastCheck({ report }: { report: DoctorReport | null }) {
  const now = useNow();
  if (report === null) return null;
  const at = new Date(report.at).getTime() / 1000;
  return (
    <p className="quiet">
      Checked{" "}
      <time dateTime={report.at} title={formatDateTime(at)}>
        {formatAge(at, now)}
      </time>{" "}
      by {report.who}, in {report.seconds} s
      {report.quick && ", without the attempts that use up memory, disk and processes"}
    </p>
  );
}

function Progress({ running }: { running: DoctorRun }) {
  const done = running.attempts.length;
  return (
    <section aria-labelledby="trying">
      <h3 id="trying">
        {running.total === 0 ? "Starting test computers…" : `${done} of ${running.total} attempts made`}
      </h3>
      {/* Without a value the bar only moves. */}
      <progress
        className="wide"
        aria-labelledby="trying"
        {...(running.total > 0 ? { max: running.total, value: done } : {})}
      />
      <Attempts attempts={[...running.attempts].reverse()} />
    </section>
  );
}

function Report({ report }: { report: DoctorReport }) {
  return (
    <>
      {report.missing_walls.map((wall) => (
        <Notice
          key={wall.wall}
          problem={{ code: "", message: `${wall.wall} is missing: ${wall.message}`, hint: wall.hint }}
        />
      ))}
      {report.manifest_errors.map((error) => (
        <Notice key={error} problem={{ code: "", message: error, hint: "Run freehold check to see where." }} />
      ))}
      {report.attempts.length > 0 && (
        <section aria-labelledby="attempts">
          <h3 id="attempts">Escape attempts</h3>
          <Attempts attempts={sortAttempts(report.attempts)} />
        </section>
      )}
      {(report.exceptions ?? []).length > 0 && (
        <section aria-labelledby="tried">
          <h3 id="tried">Exceptions</h3>
          <ul className="rows">
            {(report.exceptions ?? []).map((one) => (
              <li key={one.name}>
                <span className="chip" data-tone={one.is_right ? "leaf" : "alarm"}>
                  {one.is_right ? "works" : "failed"}
                </span>
                <div className="grow">
                  <p className="row-title">
                    <strong>{one.name}</strong> <span className="quiet">{one.seen}</span>
                  </p>
                  {one.adds.map((words) => (
                    <p key={words} className="quiet">
                      {words}
                    </p>
                  ))}
                </div>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section aria-labelledby="walls">
        <h3 id="walls">Isolation</h3>
        <Facts className="card" facts={isolationFacts(report)} />
      </section>
    </>
  );
}

function isolationFacts({ isolation, facts }: DoctorReport): [name: string, value: string][] {
  const own: [string, string][] =
    isolation === null
      ? []
      : [
          ["Backend", `${isolation.backend} ${isolation.version}, ${isolation.runs_as} on this machine`],
          ["Protections", isolation.walls.join(", ")],
          [
            "Limits",
            Object.entries(isolation.limits)
              .map(([limit, by]) => `${limit} by ${by}`)
              .join(", "),
          ],
        ];
  return [...own, ...Object.entries(facts)];
}

const TONES: Record<EscapeAttempt["outcome"], string> = { refused: "leaf", escaped: "alarm", unclear: "alarm" };

function Attempts({ attempts }: { attempts: readonly EscapeAttempt[] }) {
  if (attempts.length === 0) return null;
  return (
    <ul className="rows health-attempts">
      {attempts.map((attempt) => (
        <li key={attempt.name} data-outcome={attempt.outcome}>
          <span className="chip" data-tone={TONES[attempt.outcome]}>
            {attempt.outcome}
          </span>
          <details className="grow" open={attempt.outcome !== "refused"}>
            <summary>
              {attempt.name} <span className="quiet">{attempt.claim}</span>
            </summary>
            <p className="quiet health-seen">{attempt.seen}</p>
          </details>
        </li>
      ))}
    </ul>
  );
}
