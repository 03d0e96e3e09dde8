import type { ProgramsState } from "../../client/api";
import { useAnswer } from "../../ui/answers";
import { bytes } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { usedOf } from "./room.logic";

interface Size {
  used: number;
  quota: number;
  entries: number;
}

export function RoomSection() {
  return (
    <>
      <HistorySize />
      <ComputerUse />
    </>
  );
}

function HistorySize() {
  const { value, problem, reload } = useAnswer<Size>("/v1/history/size");
  const share = value === null || value.quota === 0 ? 0 : Math.min(1, value.used / value.quota);
  return (
    <section aria-labelledby="history-size">
      <h3 id="history-size">History</h3>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {value && (
        <div className="card size" data-full={share > 0.8 || undefined}>
          <p>
            <strong>{bytes(value.used)}</strong> of {bytes(value.quota)}
            <span className="quiet"> · {value.entries === 1 ? "one entry" : `${value.entries} entries`}</span>
          </p>
          <meter min={0} max={1} high={0.8} value={share} aria-label="Room used by history" />
          <p className="quiet">
            {share > 0.8 && <strong>Nearly full. </strong>}
            When it is full the oldest entries go. <code>history.quota</code> in freehold.toml sets how much it may take.
          </p>
        </div>
      )}
    </section>
  );
}

/** What the sealed computer uses of what it may. */
function ComputerUse() {
  const { value, problem, reload } = useAnswer<ProgramsState>("/v1/programs");
  const rows = value === null ? [] : usedOf(value.usage, value.limits);
  return (
    <section aria-labelledby="computer-use">
      <h3 id="computer-use">The computer</h3>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {value && rows.length === 0 && <p className="empty">The computer is not running.</p>}
      {rows.length > 0 && (
        <ul className="rows">
          {rows.map((row) => (
            <li key={row.limit} className="use">
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
        <code>[computer.limits]</code> in freehold.toml sets what it may use.
      </p>
    </section>
  );
}
