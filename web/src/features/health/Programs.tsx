import { useState } from "react";
import type { ProgramInfo, ProgramsState, RestartStarted, SecurityException } from "../../client/api";
import { request } from "../../client/http";
import { hasKind, useResource } from "../../data/resource";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { useNow } from "../../ui/useNow";
import {
  programDescription,
  programError,
  programFacts,
  programTitle,
  restartWarning,
  sleepFacts,
  toneOf,
} from "./programs.logic";
import "./health.css";
import { wordOf } from "../../ui/words";

const POLL_INTERVAL = 10_000;
/** The keeper records an event shortly before it reports the new state. */
const EVENT_DELAY = 400;

/** The programs that the keeper runs. */
export function Programs() {
  const { value, problem, reload } = useResource<ProgramsState>("/v1/programs", {
    topic: "timeline",
    durable: true,
    concerns: (event) => hasKind(event, "program.") || hasKind(event, "computer."),
    delay: EVENT_DELAY,
    pollInterval: POLL_INTERVAL,
  });
  const [busy, setBusy] = useState<string | null>(null);
  const toasts = useToasts();
  const now = useNow();

  async function restart(program: ProgramInfo) {
    setBusy(program.name);
    try {
      const { begun } = await request<RestartStarted>(`/v1/programs/${encodeURIComponent(program.name)}/restart`, {
        method: "POST",
      });
      toasts.done(
        begun ? `${programTitle(program.name)} was restarted` : "The gateway restarts. This page reconnects by itself.",
      );
    } catch (error) {
      toasts.failed(error);
    }
    setBusy(null);
    reload();
  }

  return (
    <section aria-labelledby="programs">
      <h3 id="programs" className={problem ? "stale" : ""}>
        Programs{value && !value.ready && `: not ready, ${value.missing.join("; ") || "still starting"}`}
      </h3>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      <ul className="rows health-programs" aria-busy={value === null && problem === null}>
        {value?.programs.map((program) => (
          <li key={program.name} data-program={program.name}>
            <div className="grow">
              <p className="row-title">
                <strong>{programTitle(program.name)}</strong>{" "}
                <span className="chip" data-tone={toneOf(program)}>
                  {wordOf(program.state)}
                </span>{" "}
                <span className="quiet">{programDescription(program.name)}</span>
              </p>
              <p className="quiet">{programFacts(program, now)}</p>
              {program.name === "computer" && sleepFacts(value.sleep, now) && (
                <p className="quiet">{sleepFacts(value.sleep, now)}</p>
              )}
              {programError(program) && <p className="problem-text">{programError(program)}</p>}
            </div>
            {program.can_restart && (
              <RestartButton program={program} busy={busy !== null} onRestart={() => void restart(program)} />
            )}
          </li>
        ))}
      </ul>
      {value && (
        <p className="quiet small-print">
          Open ports: {value.ports.map((port) => `${port.name} on ${port.host}:${port.port}`).join(", ")}
        </p>
      )}
      {value && value.exceptions.length > 0 && <Exceptions exceptions={value.exceptions} />}
      {value && value.advice.length > 0 && (
        <ul className="rows health-advice" aria-label="Advice about freehold.toml">
          {value.advice.map((one) => (
            <li key={`${one.code} ${one.message}`}>
              <span className="chip" data-tone="amber">
                {one.code}
              </span>
              <div className="grow">
                {one.message}
                {one.hint && <p className="quiet">{one.hint}</p>}
              </div>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** The protections that freehold.toml lowers, each with its reason and everything that it adds to the computer. */
function Exceptions({ exceptions }: { exceptions: readonly SecurityException[] }) {
  return (
    <>
      <h3 id="exceptions" className="health-heading">
        Exceptions
      </h3>
      <ul className="rows health-exceptions" aria-labelledby="exceptions">
        {exceptions.map((one) => (
          <li key={one.name}>
            <div className="grow">
              <p className="row-title">
                <strong>{one.name}</strong>{" "}
                {one.until !== null && (
                  <span className="chip" data-tone="amber">
                    until {one.until}
                  </span>
                )}{" "}
                <span>{one.reason}</span>
              </p>
              <p className="quiet">{one.why}</p>
              {one.adds.map((words) => (
                <p key={words} className="quiet">
                  {words}
                </p>
              ))}
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}

function RestartButton({ program, busy, onRestart }: { program: ProgramInfo; busy: boolean; onRestart: () => void }) {
  const warning = restartWarning(program.name);
  const name = `Restart ${programTitle(program.name)}`;
  if (warning === null) {
    return (
      <button className="small" disabled={busy} onClick={onRestart} aria-label={name}>
        Restart
      </button>
    );
  }
  return <ConfirmButton label="Restart" confirmLabel={warning} spoken={name} disabled={busy} onConfirm={onRestart} />;
}
