import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useNow } from "../../ui/answers";
import { Icon } from "../../ui/Icon";
import { later } from "../../ui/later";
import { dayOf } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { go, useRoute } from "../shell/route";
import { EntryRow } from "./EntryRow";
import { EventRow } from "./EventRow";
import { inEffect, type Action, type Turn } from "./history.logic";
import { PlanDialog } from "./PlanDialog";
import { RewindDialog } from "./RewindDialog";
import { GROUPS, readGroups, together, turnStarts, type Group, type Row } from "./timeline.logic";
import { useTimeline } from "./useTimeline";
import "./history.css";

const DiffPage = later(() => import("../diff/DiffPage"), "Opening…");

// How far a search goes back by itself; further on the owner's word.
const MOST_SEARCHED = 20;
const ENOUGH_FOUND = 30;

export default function HistoryPage() {
  const { path } = useRoute();
  if (path === "/history/diff") return <DiffPage />;
  return <TimelinePage />;
}

/** Everything that happened, in one list: what was done to the files and what was decided, with the way back. */
function TimelinePage() {
  const { query } = useRoute();
  const asksUndo = query.get("undo") === "last";
  const path = query.get("path");
  const show = query.get("show");
  const view = query.get("view");
  const groups = useMemo<Group[]>(() => (path === null ? readGroups(new URLSearchParams({ ...(show === null ? {} : { show }), ...(view === null ? {} : { view }) })) : ["files"]), [path, show, view]);
  const [words, setWords] = useState("");
  const [action, setAction] = useState<Action | null>(null);
  const [rewind, setRewind] = useState<Turn | null>(null);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const now = useNow();
  const timeline = useTimeline(groups, path);
  const { entries, events, ready, more, problem, reload, loadMore } = timeline;

  useEffect(() => {
    if (!asksUndo) return;
    go("/history", { replace: true });
    setAction({ action: "undo" });
  }, [asksUndo]);

  const wantsFiles = groups.includes("files");
  const day = useCallback((at: number) => dayOf(at, now), [now]);
  const rows = useMemo(() => together(wantsFiles ? entries : null, events, groups, words, day), [wantsFiles, entries, events, groups, words, day]);
  // Of a path's entries alone it cannot be told which are undone.
  const effective = useMemo(() => (path === null ? inEffect(entries?.items ?? []) : null), [path, entries]);
  const starts = useMemo(() => turnStarts(events?.items ?? []), [events]);
  const newest = path === null ? entries?.items[0] : undefined;

  // A list that is filtered by words fills itself from further back.
  const searched = useRef(0);
  useEffect(() => {
    searched.current = 0;
  }, [words]);
  useEffect(() => {
    if (words.trim() === "" || !ready || !more || rows.length > ENOUGH_FOUND || searched.current >= MOST_SEARCHED) return;
    searched.current++;
    loadMore();
  }, [words, ready, more, rows, loadMore]);

  const flip = (group: Group) => {
    const next = groups.includes(group) ? groups.filter((one) => one !== group) : [...groups, group];
    go(`/history?show=${GROUPS.filter((one) => next.includes(one.name)).map((one) => one.name).join(",")}`, { replace: true });
  };
  const toggle = useCallback((id: number) => {
    setOpen((held) => {
      const next = new Set(held);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  }, []);

  return (
    <div className="column history">
      <header className="head">
        <h1>History</h1>
        <div className="toolbar history-tools">
          <button className="small primary" disabled={newest === undefined} onClick={() => setAction({ action: "undo" })}>
            <Icon name="undo" size={18} /> Undo last change
          </button>
          <button className="small" disabled={newest?.kind !== "undo"} onClick={() => setAction({ action: "redo" })}>
            <Icon name="redo" size={18} /> Redo
          </button>
          <button className="small" disabled={newest === undefined} onClick={() => go("/history/diff")}>
            Compare…
          </button>
        </div>
      </header>
      <div className="history-find">
        <input type="search" placeholder="Find in the history" aria-label="Find in the history" value={words} onChange={(event) => setWords(event.target.value)} />
        {path === null ? (
          <div className="filters" role="group" aria-label="Show">
            {GROUPS.map((one) => (
              <button key={one.name} className="small" aria-pressed={groups.includes(one.name)} onClick={() => flip(one.name)}>
                {one.title}
              </button>
            ))}
          </div>
        ) : (
          <p className="history-path">
            What happened to <code className="path">{path}</code>
            <button className="text-button" onClick={() => go("/history")}>
              Show all
            </button>
          </p>
        )}
      </div>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {!ready && problem === null && <p className="quiet">Reading history…</p>}
      {ready && rows.length === 0 && !more && (
        <p className="empty">
          {words ? "Nothing here says that." : groups.length === 0 ? "Choose what to show." : wantsFiles ? "Nothing has changed yet. Every change to a file will be here, with the way back." : "Nothing of that kind has happened."}
        </p>
      )}
      <Rows
        rows={rows}
        stale={problem !== null}
        onEnd={words.trim() === "" && more ? loadMore : null}
        draw={(row) =>
          row.kind === "event" ? (
            <EventRow event={row.event} title={row.title} facts={row.facts} at={row.at} />
          ) : (
            <EntryRow
              entry={row.entry}
              effective={effective === null || effective.has(row.entry.id)}
              newest={row.entry === newest}
              start={starts.get(row.entry.id) ?? null}
              path={path}
              open={open.has(row.entry.id)}
              onToggle={toggle}
              onAct={setAction}
              onRewind={setRewind}
              onChanged={reload}
            />
          )
        }
      />
      {ready && more && words.trim() !== "" && searched.current >= MOST_SEARCHED && (
        <button
          className="more"
          onClick={() => {
            searched.current = 0;
            loadMore();
          }}
        >
          Look further back
        </button>
      )}
      {action && <PlanDialog action={action} onClose={() => setAction(null)} onDone={reload} />}
      {rewind && <RewindDialog turn={rewind} onClose={() => setRewind(null)} onDone={reload} />}
    </div>
  );
}

const HEIGHTS: Record<Row["kind"], number> = { day: 44, entry: 62, event: 58 };

/** Only the rows in view are drawn. The page itself scrolls. */
function Rows({ rows, stale, draw, onEnd }: { rows: readonly Row[]; stale: boolean; draw: (row: Exclude<Row, { kind: "day" }>) => React.ReactNode; onEnd: (() => void) | null }) {
  const list = useRef<HTMLOListElement>(null);
  const [top, setTop] = useState(0);
  const scroller = () => list.current?.closest("main") ?? null;
  useLayoutEffect(() => {
    const page = scroller();
    if (list.current !== null && page !== null) setTop(list.current.getBoundingClientRect().top - page.getBoundingClientRect().top + page.scrollTop);
  });
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: scroller,
    estimateSize: (index) => HEIGHTS[rows[index]?.kind ?? "event"],
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 10,
    scrollMargin: top,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  useEffect(() => {
    if (onEnd !== null && last >= rows.length - 5) onEnd();
  }, [onEnd, last, rows.length]);

  return (
    <ol ref={list} className={`entries${stale ? " stale" : ""}`} aria-label="What happened, the newest first" style={{ height: virtual.getTotalSize() }}>
      {items.map((item) => {
        const row = rows[item.index];
        if (row === undefined) return null;
        const place = { transform: `translateY(${item.start - top}px)` };
        const measured = { ref: virtual.measureElement, "data-index": item.index, style: place };
        if (row.kind === "day")
          return (
            <li key={row.key} className="day" {...measured}>
              {row.label}
            </li>
          );
        const undone = row.kind === "entry" ? "entry" : "event";
        return (
          <li key={row.key} className={`moment ${undone}-place`} aria-setsize={rows.length} aria-posinset={item.index + 1} {...measured}>
            {draw(row)}
          </li>
        );
      })}
    </ol>
  );
}
