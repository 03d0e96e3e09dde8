import { useState } from "react";
import type { Attempt, DoctorReport, DoctorRun, DoctorState, Examine } from "../../client/api";
import { request } from "../../client/http";
import { useAnswer, useNow } from "../../ui/answers";
import { ago, fullMoment } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { useTopic } from "../shell/live";
import { headlineOf, hear, inOrder, missedSome, readTold } from "./doctor.logic";

/** Isolation as it was tested, never as it was configured. */
export function DoctorSection() {
  const { value, problem, reload, put } = useAnswer<DoctorState>("/v1/doctor");
  const [busy, setBusy] = useState(false);
  const toasts = useToasts();
  useTopic("doctor", {
    event: (data) => {
      const told = readTold(data);
      if (told === null || value === null) return;
      if (missedSome(value, told)) reload();
      else put(hear(value, told));
    },
    resync: reload,
    subscribed: reload,
  });

  async function ask(method: "POST" | "DELETE", body?: Examine) {
    setBusy(true);
    try {
      put(await request<DoctorState>("/v1/doctor", body === undefined ? { method } : { method, body }));
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
        <section className="card verdict" data-tone={running === null ? headline.tone : "amber"} aria-label="Verdict">
          <div className="grow">
            <p className="verdict-words" role="status">{running === null ? headline.words : "The doctor is at work."}</p>
            {running === null ? <LastTime report={value.last} /> : <p className="quiet">Everything else goes on meanwhile.</p>}
          </div>
          {running === null ? (
            <div className="replies">
              <button className="primary" disabled={busy} onClick={() => void ask("POST", { quick: false })}>
                Examine now
              </button>
              <button
                disabled={busy}
                title="Leaves out the attempts to use up memory, disk and processes"
                onClick={() => void ask("POST", { quick: true })}
              >
                Quick look
              </button>
            </div>
          ) : (
            <button disabled={busy} onClick={() => void ask("DELETE")}>
              Stop
            </button>
          )}
        </section>
      )}
      {running !== null && <Progress running={running} />}
      {running === null && value?.last && <Report report={value.last} />}
      {running === null && value?.last === null && (
        <p className="quiet small-print">
          The doctor starts computers to throw away, with the walls of yours, and really tries each escape of its list in them. It
          takes about half a minute; everything else goes on meanwhile.
        </p>
      )}
    </>
  );
}

function LastTime({ report }: { report: DoctorReport | null }) {
  const now = useNow();
  if (report === null) return null;
  const at = new Date(report.at).getTime() / 1000;
  return (
    <p className="quiet">
      Examined{" "}
      <time dateTime={report.at} title={fullMoment(at)}>
        {ago(at, now)}
      </time>{" "}
      by {report.who}, in {report.seconds} s{report.quick && ", without the attempts to use up memory, disk and processes"}
    </p>
  );
}

function Progress({ running }: { running: DoctorRun }) {
  const done = running.attempts.length;
  return (
    <section aria-labelledby="trying">
      <h3 id="trying">
        {running.total === 0 ? "Building walls…" : `${done} of ${running.total} tried`}
      </h3>
      {/* Without a value it only moves. */}
      <progress className="wide" aria-labelledby="trying" {...(running.total > 0 ? { max: running.total, value: done } : {})} />
      <Attempts attempts={[...running.attempts].reverse()} />
    </section>
  );
}

function Report({ report }: { report: DoctorReport }) {
  return (
    <>
      {report.missing_walls.map((wall) => (
        <Notice key={wall.wall} problem={{ code: "", message: `No ${wall.wall}: ${wall.message}`, hint: wall.hint }} />
      ))}
      {report.manifest_errors.map((error) => (
        <Notice key={error} problem={{ code: "", message: error, hint: "freehold check shows where" }} />
      ))}
      {report.attempts.length > 0 && (
        <section aria-labelledby="attempts">
          <h3 id="attempts">What was tried</h3>
          <Attempts attempts={inOrder(report.attempts)} />
        </section>
      )}
      <section aria-labelledby="walls">
        <h3 id="walls">What was tested</h3>
        <dl className="facts card">
          {report.isolation && (
            <>
              <Fact name="Walls by" value={`${report.isolation.backend} ${report.isolation.version}, uid ${report.isolation.uid} on this machine`} />
              <Fact name="Walls" value={report.isolation.walls.join(", ")} />
              <Fact
                name="Limits"
                value={Object.entries(report.isolation.limits)
                  .map(([limit, by]) => `${limit} by ${by}`)
                  .join(", ")}
              />
            </>
          )}
          {Object.entries(report.facts).map(([name, value]) => (
            <Fact key={name} name={name} value={value} />
          ))}
        </dl>
      </section>
    </>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

const TONES: Record<Attempt["outcome"], string> = { refused: "leaf", escaped: "alarm", unclear: "alarm" };

function Attempts({ attempts }: { attempts: readonly Attempt[] }) {
  if (attempts.length === 0) return null;
  return (
    <ul className="rows attempts">
      {attempts.map((attempt) => (
        <li key={attempt.name} data-outcome={attempt.outcome}>
          <span className="chip" data-tone={TONES[attempt.outcome]}>
            {attempt.outcome}
          </span>
          <details className="grow" open={attempt.outcome !== "refused"}>
            <summary>
              {attempt.name} <span className="quiet">{attempt.claim}</span>
            </summary>
            <p className="quiet seen">{attempt.seen}</p>
          </details>
        </li>
      ))}
    </ul>
  );
}
