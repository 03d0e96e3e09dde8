import { useMemo, useState } from "react";
import type { UsageLine } from "../../client/api";
import { LANGUAGE } from "../../language/translation";
import { useNarrowScreen } from "../../ui/useNarrowScreen";
import {
  type Bar,
  barsOf,
  costText,
  formatAmount,
  formatCount,
  formatDate,
  type Measure,
  type ModelUse,
  readUsage,
  seriesOf,
  totalsOf,
} from "./usage.logic";

const WIDE = 720;
const NARROW = 340;
const HEIGHT = 200;
const LEFT = 52;
const BOTTOM = 22;
const TOP = 8;
const GAP = 0.28;

/** The usage as a chart with one bar per day, and as a table. */
export function UsageChart({ rows, days }: { rows: readonly UsageLine[]; days: readonly string[] }) {
  const [measure, setMeasure] = useState<Measure>("cost");
  const narrow = useNarrowScreen();
  const uses = useMemo(() => readUsage(rows).filter((use) => days.includes(use.day)), [rows, days]);
  const totals = totalsOf(uses, measure);
  const series = seriesOf(totals);
  const { bars, top } = barsOf(uses, days, series, measure);
  const unpriced = totals.filter((total) => total.unpriced);
  const assumed = totals.filter((total) => total.assumed);
  return (
    <div className="models-usage">
      <div className="models-usage-head">
        <div className="tabs" role="group" aria-label="Unit">
          {(["cost", "tokens"] as const).map((one) => (
            <button key={one} aria-pressed={measure === one} onClick={() => setMeasure(one)}>
              {one === "cost" ? "Dollars" : "Tokens"}
            </button>
          ))}
        </div>
      </div>
      <Chart bars={bars} top={top} measure={measure} width={narrow ? NARROW : WIDE} />
      <ul className="models-legend" aria-label="Models">
        {series.map((name, index) => (
          <li key={name}>
            <span className="models-swatch" data-series={index} aria-hidden="true" />
            {name}
          </li>
        ))}
      </ul>
      {measure === "cost" && unpriced.length > 0 && (
        <p className="quiet small-print">
          The price of {unpriced.map((total) => total.model).join(", ")} is unknown, so the bars do not include it. A
          dot marks the days with such requests.
        </p>
      )}
      {measure === "cost" && assumed.length > 0 && (
        <p className="quiet small-print">
          The price of {assumed.map((total) => total.model).join(", ")} is not in the price list. It counts as the
          dearest of its provider.
        </p>
      )}
      <table className="models-table">
        <caption>By model, last {days.length} days</caption>
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col">Requests</th>
            <th scope="col">In</th>
            <th scope="col">Out</th>
            <th scope="col">Cost</th>
          </tr>
        </thead>
        <tbody>
          {totals.map((total) => (
            <tr key={total.model}>
              <th scope="row">{total.model}</th>
              <td>{total.requests.toLocaleString(LANGUAGE)}</td>
              <td>{formatCount(total.input)}</td>
              <td>{formatCount(total.output)}</td>
              <td>{costText(total)}</td>
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

function Chart({
  bars,
  top,
  measure,
  width: whole,
}: {
  bars: readonly Bar[];
  top: number;
  measure: Measure;
  width: number;
}) {
  const width = (whole - LEFT) / bars.length;
  const y = (share: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - share);
  const every = Math.ceil(bars.length / (whole / 110));
  const all = bars.reduce((sum, bar) => sum + bar.total, 0);
  return (
    <svg
      className="models-chart"
      viewBox={`0 0 ${whole} ${HEIGHT}`}
      role="img"
      aria-label={`${formatAmount(all, measure)} in ${bars.length} days, at most ${formatAmount(Math.max(0, ...bars.map((bar) => bar.total)), measure)} on a day. The table below has the numbers.`}
    >
      {[0, 0.5, 1].map((share) => (
        <g key={share}>
          <line className="models-grid" x1={LEFT} x2={whole} y1={y(share)} y2={y(share)} />
          <text className="models-tick" x={LEFT - 8} y={y(share) + 4} textAnchor="end">
            {formatAmount(top * share, measure)}
          </text>
        </g>
      ))}
      {bars.map((bar, index) => {
        const x = LEFT + index * width + (width * GAP) / 2;
        return (
          <g key={bar.day}>
            <title>{`${formatDate(bar.day)}: ${formatAmount(bar.total, measure)}${bar.unpriced && measure === "cost" ? " + unknown" : ""}`}</title>
            <rect
              className="models-day"
              x={LEFT + index * width}
              y={TOP}
              width={width}
              height={HEIGHT - TOP - BOTTOM}
            />
            {bar.segments.map((segment) => (
              <rect
                key={segment.series}
                className="models-segment"
                data-series={segment.series}
                x={x}
                width={width * (1 - GAP)}
                y={y(segment.to)}
                height={Math.max(0.5, y(segment.from) - y(segment.to))}
              />
            ))}
            {bar.unpriced && measure === "cost" && (
              <circle
                className="models-unpriced"
                cx={x + (width * (1 - GAP)) / 2}
                cy={y(bar.segments.at(-1)?.to ?? 0) - 6}
                r={2.5}
              />
            )}
            {(bars.length - 1 - index) % every === 0 && (
              <text
                className="models-tick"
                x={x + (width * (1 - GAP)) / 2}
                y={HEIGHT - 6}
                textAnchor={index === bars.length - 1 ? "end" : "middle"}
              >
                {formatDate(bar.day)}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}

function DayTable({ uses, days }: { uses: readonly ModelUse[]; days: readonly string[] }) {
  const used = [...days].reverse().filter((day) => uses.some((use) => use.day === day));
  return (
    <table className="models-table">
      <thead>
        <tr>
          <th scope="col">Day</th>
          <th scope="col">Model</th>
          <th scope="col">Requests</th>
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
              <th scope="row">
                {index === 0 ? formatDate(day) : <span className="visually-hidden">{formatDate(day)}</span>}
              </th>
              <td>{total.model}</td>
              <td>{total.requests.toLocaleString(LANGUAGE)}</td>
              <td>{formatCount(total.input + total.output)}</td>
              <td>{costText(total)}</td>
            </tr>
          )),
        )}
      </tbody>
    </table>
  );
}
