import type { ProgramsState } from "../../client/api";
import { type ResourceHandle, useResource } from "../../data/resource";
import { countOf, formatBytes } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { resourceUse } from "./storage.logic";

interface HistorySizeReply {
  used: number;
  quota: number;
  entries: number;
  set_aside: number;
}

export function StorageSection() {
  const size = useResource<HistorySizeReply>("/v1/history/size");
  const programs = useResource<ProgramsState>("/v1/programs");
  // Both are drawn at once, so that neither moves the other.
  if ([size, programs].some(({ value, problem }) => value === null && problem === null))
    return <p className="loading quiet fade-in-late">Loading…</p>;
  return (
    <>
      <HistorySize {...size} />
      <ComputerUse {...programs} />
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
