import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { formatDay } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { go, useRoute } from "../../ui/route";
import { useNow } from "../../ui/useNow";
import { EntryRow } from "./EntryRow";
import { EventRow } from "./EventRow";
import { HistoryList } from "./HistoryList";
import { HistoryNotices } from "./HistoryNotices";
import { effectiveEntries, type HistoryAction, type Turn } from "./history.logic";
import { PlanDialog } from "./PlanDialog";
import { RewindDialog } from "./RewindDialog";
import { RunningRestores } from "./RunningRestores";
import { GROUPS, type Group, mergeRows, readGroups, turnStarts } from "./timeline.logic";
import { type Timeline, useTimeline } from "./useTimeline";
import "./history.css";

/** How many pages a search loads by itself, and how many rows are enough. */
const MAX_PAGES_SEARCHED = 20;
const ENOUGH_ROWS = 30;

/** Everything that happened, in one list, with buttons to undo and restore. */
export default function HistoryPage() {
  const { query } = useRoute();
  const asked = query.get("undo") === "last" ? "undo" : query.get("redo") === "last" ? "redo" : null;
  const path = query.get("path");
  const groups = useGroups(query, path);
  const [search, setSearch] = useState("");
  const [action, setAction] = useState<HistoryAction | null>(null);
  const [rewind, setRewind] = useState<Turn | null>(null);
  const [open, toggle] = useOpenEntries();
  const now = useNow();
  const timeline = useTimeline(groups, path);
  const { entries, events, ready, hasMore, problem, reload, loadMore } = timeline;

  useEffect(() => {
    if (asked === null) return;
    go("/history", { replace: true });
    setAction({ action: asked });
  }, [asked]);

  const showsFiles = groups.includes("files");
  const day = useCallback((at: number) => formatDay(at, now), [now]);
  const rows = useMemo(
    () => mergeRows(showsFiles ? entries : null, events, groups, search, day),
    [showsFiles, entries, events, groups, search, day],
  );
  // The entries of one path do not tell which of them are undone.
  const effective = useMemo(() => (path === null ? effectiveEntries(entries?.items ?? []) : null), [path, entries]);
  const starts = useMemo(() => turnStarts(events?.items ?? []), [events]);
  const newest = path === null ? entries?.items[0] : undefined;
  const isSearching = search.trim() !== "";
  const deepSearch = useDeepSearch(search, timeline, rows.length);

  return (
    <div className="column history">
      <header className="head">
        <h1>History</h1>
        <div className="toolbar history-actions">
          <button
            type="button"
            className="small primary"
            disabled={newest === undefined}
            onClick={() => setAction({ action: "undo" })}
          >
            <Icon name="undo" size={18} /> Undo last change
          </button>
          <button
            type="button"
            className="small"
            disabled={newest?.kind !== "undo"}
            onClick={() => setAction({ action: "redo" })}
          >
            <Icon name="redo" size={18} /> Redo
          </button>
          <button type="button" className="small" disabled={newest === undefined} onClick={() => go("/history/diff")}>
            Compare…
          </button>
        </div>
      </header>
      <div className="history-search">
        <input
          type="search"
          placeholder="Find in the history"
          aria-label="Find in the history"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        {path === null ? <GroupFilter groups={groups} /> : <PathFilter path={path} />}
      </div>
      {action === null && rewind === null && <RunningRestores />}
      <HistoryNotices />
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {!ready && problem === null && <p className="quiet">Loading the history…</p>}
      {ready && rows.length === 0 && !hasMore && <p className="empty">{emptyText(isSearching, groups)}</p>}
      <HistoryList
        rows={rows}
        stale={problem !== null}
        onEnd={!isSearching && hasMore ? loadMore : null}
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
      {deepSearch.isPaused && (
        <button type="button" className="load-more" onClick={deepSearch.resume}>
          Search older entries
        </button>
      )}
      {action && <PlanDialog action={action} onClose={() => setAction(null)} onDone={reload} />}
      {rewind && <RewindDialog turn={rewind} onClose={() => setRewind(null)} onDone={reload} />}
    </div>
  );
}

/** The groups that the address asks for. The history of one path has only files. */
function useGroups(query: URLSearchParams, path: string | null): readonly Group[] {
  const show = query.get("show");
  const view = query.get("view");
  return useMemo<Group[]>(() => {
    if (path !== null) return ["files"];
    return readGroups(new URLSearchParams({ ...(show === null ? {} : { show }), ...(view === null ? {} : { view }) }));
  }, [path, show, view]);
}

function useOpenEntries(): [open: ReadonlySet<number>, toggle: (id: number) => void] {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const toggle = useCallback((id: number) => {
    setOpen((before) => {
      const after = new Set(before);
      if (!after.delete(id)) after.add(id);
      return after;
    });
  }, []);
  return [open, toggle];
}

/** Loads older pages while a search has few results, up to a limit. */
function useDeepSearch(search: string, { ready, hasMore, loadMore }: Timeline, rowCount: number) {
  const pages = useRef(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another search starts to count again
  useEffect(() => {
    pages.current = 0;
  }, [search]);
  const isSearching = search.trim() !== "";
  // biome-ignore lint/correctness/useExhaustiveDependencies: another search may need older pages again
  useEffect(() => {
    if (!isSearching || !ready || !hasMore || rowCount > ENOUGH_ROWS || pages.current >= MAX_PAGES_SEARCHED) return;
    pages.current++;
    loadMore();
  }, [search, isSearching, ready, hasMore, rowCount, loadMore]);
  return {
    isPaused: ready && hasMore && isSearching && pages.current >= MAX_PAGES_SEARCHED,
    resume: () => {
      pages.current = 0;
      loadMore();
    },
  };
}

function GroupFilter({ groups }: { groups: readonly Group[] }) {
  const toggle = (group: Group) => {
    const next = groups.includes(group) ? groups.filter((one) => one !== group) : [...groups, group];
    const names = GROUPS.filter((one) => next.includes(one.name)).map((one) => one.name);
    go(`/history?show=${names.join(",")}`, { replace: true });
  };
  return (
    <div className="filters" role="group" aria-label="Show">
      {GROUPS.map((one) => (
        <button
          key={one.name}
          type="button"
          className="small"
          aria-pressed={groups.includes(one.name)}
          onClick={() => toggle(one.name)}
        >
          {one.title}
        </button>
      ))}
    </div>
  );
}

function PathFilter({ path }: { path: string }) {
  return (
    <p className="history-path">
      Changes of <code className="path">{path}</code>
      <button type="button" className="text-button" onClick={() => go("/history")}>
        Show all changes
      </button>
    </p>
  );
}

function emptyText(isSearching: boolean, groups: readonly Group[]): string {
  if (isSearching) return "Nothing matches.";
  if (groups.length === 0) return "Choose what to show.";
  return groups.includes("files")
    ? "No changes yet. Every file change will be listed here, and you can undo it."
    : "No events of this kind.";
}
