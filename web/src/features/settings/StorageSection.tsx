import { Fragment } from "react";
import type { ProgramsState, Retention } from "../../client/api";
import { hasKind, type ResourceHandle, useResource } from "../../data/resource";
import { countOf, formatAge, formatBytes, formatDateTime } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { useNow } from "../../ui/useNow";
import { Mounts } from "./Mounts";
import { resourceUse } from "./storage.logic";

/** In milliseconds. The state of a mount causes no event. */
const POLL_INTERVAL = 10_000;

interface HistorySizeReply {
  used: number;
  quota: number;
  entries: number;
  set_aside: number;
}

export function StorageSection() {
  const size = useResource<HistorySizeReply>("/v1/history/size");
  const programs = useResource<ProgramsState>("/v1/programs", { pollInterval: POLL_INTERVAL });
  const retention = useResource<Retention>("/v1/retention", {
    topic: "timeline",
    durable: true,
    concerns: (event) => hasKind(event, "timeline.events_archived"),
  });
  // All are drawn at once, so that none moves another.
  if ([size, programs, retention].some(({ value, problem }) => value === null && problem === null))
    return <p className="loading quiet fade-in-late">Loading…</p>;
  return (
    <>
      <HistorySize {...size} />
      <ComputerUse {...programs} />
      {programs.value && <Mounts mounts={programs.value.mounts} />}
      <RetentionRules {...retention} />
    </>
  );
}

function HistorySize({ value, problem, reload }: ResourceHandle<HistorySizeReply>) {
  const share = value === null || value.quota === 0 ? 0 : Math.min(1, value.used / value.quota);
  return (
    <section aria-labelledby="history-size">
      <h3 id="history-size">History</h3>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {value && (
        <div className="card settings-size" data-full={share > 0.8 || undefined}>
          <p>
            <strong>{formatBytes(value.used)}</strong> of {formatBytes(value.quota)}
            <span className="quiet"> · {countOf(value.entries, "entry", "entries")}</span>
          </p>
          <meter min={0} max={1} high={0.8} value={share} aria-label="Storage used by history" />
          <p className="quiet">
            {share > 0.8 && <strong>Almost full. </strong>}
            When it is full, the oldest entries are deleted. Change the limit with <code>history.quota</code> in
            freehold.toml.
          </p>
          {value.set_aside > 0 && (
            <p className="quiet">
              {formatBytes(value.set_aside)} were moved aside by an undo or a restore. They do not count for this limit.
            </p>
          )}
        </div>
      )}
    </section>
  );
}

/** What the computer uses of its limits. */
function ComputerUse({ value, problem, reload }: ResourceHandle<ProgramsState>) {
  const rows = value === null ? [] : resourceUse(value.usage, value.limits);
  return (
    <section aria-labelledby="computer-use">
      <h3 id="computer-use">The computer</h3>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {value && rows.length === 0 && <p className="empty">The computer is not running.</p>}
      {rows.length > 0 && (
        <ul className="rows">
          {rows.map((row) => (
            <li key={row.limit} className="settings-use">
              <div className="grow">
                {row.title}
                <p className="quiet">
                  {row.used} of {row.allowed}
                </p>
              </div>
              <meter min={0} max={1} high={0.8} value={row.share} aria-label={`${row.title} used`} />
            </li>
          ))}
        </ul>
      )}
      <p className="quiet small-print">
        Change the limits with <code>[computer.limits]</code> in freehold.toml.
      </p>
    </section>
  );
}

/** What is kept and for how long, when old records were last archived, and where they are. */
function RetentionRules({ value, problem, reload }: ResourceHandle<Retention>) {
  const now = useNow();
  return (
    <section aria-labelledby="retention">
      <h3 id="retention">What is kept</h3>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {value && (
        <ul className="rows">
          {value.rules.map((rule) => (
            <li key={rule.name} className="settings-kept">
              <strong>{rule.title}</strong>
              <p>{rule.kept}.</p>
              <p className="quiet">
                {rule.now && <>{rule.now}. </>}
                {rule.last_archived && (
                  <>
                    Last archived{" "}
                    <time dateTime={rule.last_archived} title={formatDateTime(Date.parse(rule.last_archived) / 1000)}>
                      {formatAge(Date.parse(rule.last_archived) / 1000, now)}
                    </time>
                    .{" "}
                  </>
                )}
                {rule.setting && (
                  <>
                    Change it with <code>{rule.setting}</code> in freehold.toml.
                  </>
                )}
              </p>
              <p className="quiet">
                In{" "}
                {rule.where.map((place, index) => (
                  <Fragment key={place}>
                    {index > 0 && " and "}
                    <code className="path">{place}</code>
                  </Fragment>
                ))}
              </p>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
