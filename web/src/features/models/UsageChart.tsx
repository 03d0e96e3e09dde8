import { useMemo, useState, useSyncExternalStore } from "react";
import { barsOf, costWords, dayWords, readUses, said, seriesOf, short, totalsOf, type Bar, type Measure, type Use } from "./usage.logic";
import type { UsageRow } from "../../client/api";

const WIDE = 720;
const NARROW = 340;
const HEIGHT = 200;
const LEFT = 52;
const BOTTOM = 22;
const TOP = 8;
const GAP = 0.28;

/** What was used, a bar a day, and the same as a table. */
export function UsageChart({ rows, days }: { rows: readonly UsageRow[]; days: readonly string[] }) {
  const [measure, setMeasure] = useState<Measure>("cost");
  const narrow = useNarrow();
  const uses = useMemo(() => readUses(rows).filter((use) => days.includes(use.day)), [rows, days]);
  const totals = totalsOf(uses, measure);
  const series = seriesOf(totals);
  const { bars, top } = barsOf(uses, days, series, measure);
  const unpriced = totals.filter((total) => total.unpriced);
  return (
    <div className="usage">
      <div className="usage-head">
        <div className="tabs" role="group" aria-label="Measured in">
          {(["cost", "tokens"] as const).map((one) => (
            <button key={one} aria-pressed={measure === one} onClick={() => setMeasure(one)}>
              {one === "cost" ? "Dollars" : "Tokens"}
            </button>
          ))}
        </div>
      </div>
      <Chart bars={bars} top={top} measure={measure} width={narrow ? NARROW : WIDE} />
      <ul className="legend" aria-label="Models">
        {series.map((name, index) => (
          <li key={name}>
            <span className="swatch" data-series={index} aria-hidden="true" />
            {name}
          </li>
        ))}
      </ul>
      {measure === "cost" && unpriced.length > 0 && (
        <p className="quiet small-print">
          Nobody knows the price of {unpriced.map((total) => total.model).join(", ")}: what those cost is not in the bars. Days with such
          questions are marked with a dot.
        </p>
      )}
      <table className="usage-table">
        <caption>By model, in these {days.length} days</caption>
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col">Questions</th>
            <th scope="col">In</th>
            <th scope="col">Out</th>
            <th scope="col">Cost</th>
          </tr>
        </thead>
        <tbody>
          {totals.map((total) => (
            <tr key={total.model}>
              <th scope="row">{total.model}</th>
              <td>{total.requests.toLocaleString("en")}</td>
              <td>{short(total.input)}</td>
              <td>{short(total.output)}</td>
              <td>{costWords(total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <details>
        <summary>Day by day</summary>
        <DayTable uses={uses} days={days} />
      </details>
    </div>
  );
}

function Chart({ bars, top, measure, width: whole }: { bars: readonly Bar[]; top: number; measure: Measure; width: number }) {
  const width = (whole - LEFT) / bars.length;
  const y = (share: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - share);
  const every = Math.ceil(bars.length / (whole / 110));
  const all = bars.reduce((sum, bar) => sum + bar.total, 0);
  return (
    <svg
      className="chart"
      viewBox={`0 0 ${whole} ${HEIGHT}`}
      role="img"
      aria-label={`${said(all, measure)} in ${bars.length} days, at most ${said(Math.max(0, ...bars.map((bar) => bar.total)), measure)} on a day. The table below has the numbers.`}
    >
      {[0, 0.5, 1].map((share) => (
        <g key={share}>
          <line className="grid" x1={LEFT} x2={whole} y1={y(share)} y2={y(share)} />
          <text className="tick" x={LEFT - 8} y={y(share) + 4} textAnchor="end">
            {said(top * share, measure)}
          </text>
        </g>
      ))}
      {bars.map((bar, index) => {
        const x = LEFT + index * width + (width * GAP) / 2;
        return (
          <g key={bar.day}>
            <title>{`${dayWords(bar.day)}: ${said(bar.total, measure)}${bar.unpriced && measure === "cost" ? " and what has no known price" : ""}`}</title>
            <rect className="whole-day" x={LEFT + index * width} y={TOP} width={width} height={HEIGHT - TOP - BOTTOM} />
            {bar.segments.map((segment) => (
              <rect
                key={segment.series}
                className="segment"
                data-series={segment.series}
                x={x}
                width={width * (1 - GAP)}
                y={y(segment.to)}
                height={Math.max(0.5, y(segment.from) - y(segment.to))}
              />
            ))}
            {bar.unpriced && measure === "cost" && <circle className="unpriced" cx={x + (width * (1 - GAP)) / 2} cy={y(bar.segments.at(-1)?.to ?? 0) - 6} r={2.5} />}
            {(bars.length - 1 - index) % every === 0 && (
              <text className="tick" x={x + (width * (1 - GAP)) / 2} y={HEIGHT - 6} textAnchor={index === bars.length - 1 ? "end" : "middle"}>
                {dayWords(bar.day)}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

const NARROWER = "(max-width: 760px)";

function listenNarrow(changed: () => void): () => void {
  const query = matchMedia(NARROWER);
  query.addEventListener("change", changed);
  return () => query.removeEventListener("change", changed);
}

/** Text in the picture must stay readable where the picture is small. */
function useNarrow(): boolean {
  return useSyncExternalStore(listenNarrow, () => matchMedia(NARROWER).matches);
}

function DayTable({ uses, days }: { uses: readonly Use[]; days: readonly string[] }) {
  const used = [...days].reverse().filter((day) => uses.some((use) => use.day === day));
  return (
    <table className="usage-table">
      <thead>
        <tr>
          <th scope="col">Day</th>
          <th scope="col">Model</th>
          <th scope="col">Questions</th>
          <th scope="col">Tokens</th>
          <th scope="col">Cost</th>
        </tr>
      </thead>
      <tbody>
        {used.flatMap((day) =>
          totalsOf(
            uses.filter((use) => use.day === day),
            "cost",
          ).map((total, index) => (
            <tr key={`${day} ${total.model}`}>
              <th scope="row">{index === 0 ? dayWords(day) : <span className="unseen">{dayWords(day)}</span>}</th>
              <td>{total.model}</td>
              <td>{total.requests.toLocaleString("en")}</td>
              <td>{short(total.input + total.output)}</td>
              <td>{costWords(total)}</td>
            </tr>
          )),
        )}
      </tbody>
    </table>
  );
}
