import { useEffect, useState } from "react";
import type { ProgramRow, ProgramsState, RestartAsked } from "../../client/api";
import { request } from "../../client/http";
import { useAnswer, useNow } from "../../ui/answers";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { TwoPress } from "../../ui/TwoPress";
import { useTopic } from "../shell/live";
import { costOfRestart, factsOf, meaningOf, titleOf, toneOf, troubleWith } from "./programs.logic";

const EVERY = 10_000;
/** The keeper writes its events a moment before it tells the new state. */
const SOON = 400;

/** What the keeper keeps running, as it says now. */
export function Programs() {
  const { value, problem, reload } = useAnswer<ProgramsState>("/v1/programs");
  const [busy, setBusy] = useState<string | null>(null);
  const toasts = useToasts();
  const now = useNow();
  useTopic(
    "timeline",
    {
      event: (data) => {
        if (String((data as { kind?: unknown }).kind).startsWith("program.")) setTimeout(reload, SOON);
      },
      resync: reload,
    },
    { durable: true },
  );
  useEffect(() => {
    const timer = setInterval(reload, EVERY);
    return () => clearInterval(timer);
  }, [reload]);

  async function restart(program: ProgramRow) {
    setBusy(program.name);
    try {
      const { begun } = await request<RestartAsked>(`/v1/programs/${encodeURIComponent(program.name)}/restart`, { method: "POST" });
      toasts.done(begun ? `${titleOf(program.name)} was restarted` : "The gateway restarts; this page goes on by itself");
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
      <ul className="rows programs" aria-busy={value === null}>
        {value?.programs.map((program) => (
          <li key={program.name} data-program={program.name}>
            <div className="grow">
              <p className="row-title">
                <strong>{titleOf(program.name)}</strong>{" "}
                <span className="chip" data-tone={toneOf(program)}>
                  {program.state}
                </span>{" "}
                <span className="quiet">{meaningOf(program.name)}</span>
              </p>
              <p className="quiet">{factsOf(program, now)}</p>
              {troubleWith(program) && <p className="trouble">{troubleWith(program)}</p>}
            </div>
            {program.can_restart && <RestartButton program={program} busy={busy !== null} onRestart={() => void restart(program)} />}
          </li>
        ))}
      </ul>
      {value && (
        <p className="quiet small-print">
          Listening: {value.ports.map((port) => `${port.name} on ${port.host}:${port.port}`).join(", ")}
        </p>
      )}
      {value && value.advice.length > 0 && (
        <ul className="rows advice" aria-label="Advice about freehold.toml">
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

function RestartButton({ program, busy, onRestart }: { program: ProgramRow; busy: boolean; onRestart: () => void }) {
  const cost = costOfRestart(program.name);
  const name = `Restart ${titleOf(program.name)}`;
  if (cost === null) {
    return (
      <button className="small" disabled={busy} onClick={onRestart} aria-label={name}>
        Restart
      </button>
    );
  }
  return <TwoPress label="Restart" sure={cost} name={name} disabled={busy} onSure={onRestart} />;
}
