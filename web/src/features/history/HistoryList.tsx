import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Row } from "./timeline.logic";

const ROW_HEIGHTS: Record<Row["kind"], number> = { day: 44, entry: 62, event: 58 };
/** Rows from the end at which more are loaded. */
const LOAD_MORE_AT = 5;

interface HistoryListProps {
  rows: readonly Row[];
  stale: boolean;
  draw: (row: Exclude<Row, { kind: "day" }>) => ReactNode;
  /** Called near the end of the list; null when there is no more. */
  onEnd: (() => void) | null;
}

/** A long list in which only the rows in view are drawn. The page scrolls, not the list. */
export function HistoryList({ rows, stale, draw, onEnd }: HistoryListProps) {
  const list = useRef<HTMLOListElement>(null);
  const [top, setTop] = useState(0);
  const scroller = () => list.current?.closest("main") ?? null;
  useLayoutEffect(() => {
    const page = list.current?.closest("main") ?? null;
    if (list.current === null || page === null) return;
    setTop(list.current.getBoundingClientRect().top - page.getBoundingClientRect().top + page.scrollTop);
  });
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: scroller,
    estimateSize: (index) => ROW_HEIGHTS[rows[index]?.kind ?? "event"],
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 10,
    scrollMargin: top,
  });
  const items = virtual.getVirtualItems();
  const lastIndex = items.at(-1)?.index ?? -1;
  useEffect(() => {
    if (onEnd !== null && lastIndex >= rows.length - LOAD_MORE_AT) onEnd();
  }, [onEnd, lastIndex, rows.length]);

  return (
    <ol
      ref={list}
      className={`history-list${stale ? " stale" : ""}`}
      aria-label="History, newest first"
      style={{ height: virtual.getTotalSize() }}
    >
      {items.map((item) => {
        const row = rows[item.index];
        if (row === undefined) return null;
        const measured = {
          ref: virtual.measureElement,
          "data-index": item.index,
          style: { transform: `translateY(${item.start - top}px)` },
        };
        if (row.kind === "day")
          return (
            <li key={row.key} className="history-day" {...measured}>
              {row.label}
            </li>
          );
        return (
          <li
            key={row.key}
            className="history-row"
            aria-setsize={rows.length}
            aria-posinset={item.index + 1}
            {...measured}
          >
            {draw(row)}
          </li>
        );
      })}
    </ol>
  );
}
