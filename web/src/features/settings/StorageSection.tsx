import type { ProgramsState } from "../../client/api";
import { useResource } from "../../data/resource";
import { countOf, formatBytes } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { resourceUse } from "./storage.logic";

interface HistorySizeReply {
  used: number;
  quota: number;
  entries: number;
}

export function StorageSection() {
  return (
    <>
      <HistorySize />
      <ComputerUse />
    </>
  );
}

function HistorySize() {
  const { value, problem, reload } = useResource<HistorySizeReply>("/v1/history/size");
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
        </div>
      )}
    </section>
  );
}

/** What the computer uses of its limits. */
function ComputerUse() {
  const { value, problem, reload } = useResource<ProgramsState>("/v1/programs");
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
