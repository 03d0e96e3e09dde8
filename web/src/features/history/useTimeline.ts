import { useCallback, useEffect, useRef } from "react";
import type { HistoryEntry, HistoryPage, TimelineEvents } from "../../client/api";
import { type Problem, request } from "../../client/http";
import { useTopic } from "../../data/connection";
import { hasKind, type ResourceHandle, useResource } from "../../data/resource";
import type { RecordedEvent } from "./eventText.logic";
import { type Group, kindsOf, type LoadedList, nextToLoad, withEvents, withNewest } from "./timeline.logic";

const ENTRY_PAGE = 60;
const EVENT_PAGE = 200;
/** A burst of changes becomes one entry when it is over. */
const ENTRY_DELAY = 250;
const BURST_DELAYS = [600, 1_500, 3_000];
/** As `before`: the newest page. */
const NEWEST = Number.MAX_SAFE_INTEGER;

export interface Timeline {
  /** Newest first; null until they are loaded. */
  entries: LoadedList<HistoryEntry> | null;
  events: LoadedList<RecordedEvent> | null;
  /** Whether the first page of both is loaded. */
  ready: boolean;
  hasMore: boolean;
  problem: Problem | null;
  reload: () => void;
  loadMore: () => void;
}

/** History entries and timeline events, kept up to date. With a path, only the entries that changed it. */
export function useTimeline(groups: readonly Group[], path: string | null): Timeline {
  const entries = useEntries(path);
  const events = useEvents(groups, path === null);
  const reload = useCallback(() => {
    entries.reload();
    events.reload();
  }, [entries.reload, events.reload]);

  const loading = useRef("");
  const loadMore = useCallback(() => {
    const list = nextToLoad(entries.value, events.value);
    if (list === null) return;
    const load = list === "entries" ? entries : events;
    const key = `${load.path} ${load.lastKey}`;
    if (load.lastKey === undefined || loading.current === key) return;
    loading.current = key;
    load.loadOlder(load.lastKey).catch((error: unknown) => {
      loading.current = "";
      load.fail(error);
    });
  }, [entries, events]);

  const showsEntries = groups.includes("files") || path !== null;
  return {
    entries: entries.value,
    events: events.value,
    ready: entries.value !== null && (path !== null || events.value !== null),
    hasMore: nextToLoad(showsEntries ? entries.value : null, events.value) !== null,
    problem: entries.problem ?? events.problem,
    reload,
    loadMore,
  };
}

interface PagedList<T> extends ResourceHandle<LoadedList<T>> {
  path: string | null;
  /** The number of the oldest loaded item. */
  lastKey: number | undefined;
  loadOlder: (before: number) => Promise<void>;
}

function useEntries(path: string | null): PagedList<HistoryEntry> {
  const address = `/v1/history?limit=${ENTRY_PAGE}${path === null ? "" : `&path=${encodeURIComponent(path)}`}`;
  const read = (page: HistoryPage): LoadedList<HistoryEntry> => ({
    items: page.entries,
    more: page.entries.length === ENTRY_PAGE,
  });
  const list = useResource<LoadedList<HistoryEntry>>(address, {
    topic: "timeline",
    durable: true,
    concerns: (event) => hasKind(event, "history.", "turn.ended"),
    delay: ENTRY_DELAY,
    read: (reply) => read(reply as HistoryPage),
    merge: (held, page) => {
      const items = withNewest(held?.items ?? [], page.items);
      return { items, more: items.length > page.items.length ? (held?.more ?? false) : page.more };
    },
  });
  useReloadAfterBurst(list.reload);
  const { update } = list;
  const loadOlder = useCallback(
    async (before: number) => {
      const page = await request<HistoryPage>(`${address}&before=${before}`);
      const older = page.entries.filter((entry) => entry.id < before);
      update((held) => ({ items: [...held.items, ...older], more: page.entries.length === ENTRY_PAGE }));
    },
    [address, update],
  );
  return { ...list, path: address, lastKey: list.value?.items.at(-1)?.id, loadOlder };
}

function useEvents(groups: readonly Group[], wanted: boolean): PagedList<RecordedEvent> {
  const kinds = (kindsOf(groups) ?? []).map((kind) => `&kind=${kind}`).join("");
  const address = wanted ? `/v1/timeline?limit=${EVENT_PAGE}${kinds}` : null;
  const list = useResource<LoadedList<RecordedEvent>>(address === null ? null : `${address}&before=${NEWEST}`, {
    topic: "timeline",
    durable: true,
    read: (reply) => {
      const page = reply as TimelineEvents;
      return { items: withEvents([], page.events), more: page.next !== null };
    },
    merge: (held, page) => {
      const newestHeld = held?.items[0]?.seq ?? 0;
      const isAdjacent = held !== null && page.items.some((event) => event.seq <= newestHeld);
      return isAdjacent ? { items: withEvents(held.items, page.items), more: held.more } : page;
    },
    apply: (held, event) => ({ items: withEvents(held.items, [event as RecordedEvent]), more: held.more }),
  });
  const { update } = list;
  const loadOlder = useCallback(
    async (before: number) => {
      const page = await request<TimelineEvents>(`${address}&before=${before}`);
      update((held) => ({ items: withEvents(held.items, page.events), more: page.next !== null }));
    },
    [address, update],
  );
  return { ...list, path: address, lastKey: list.value?.items.at(-1)?.seq, loadOlder };
}

/** Changes of files become an entry some time after the last one, so the list is fetched a few times. */
function useReloadAfterBurst(reload: () => void): void {
  const timers = useRef<number[]>([]);
  const cancel = useCallback(() => {
    for (const timer of timers.current) clearTimeout(timer);
  }, []);
  useTopic("files", {
    event: (data) => {
      if ((data as { items?: unknown[] }).items?.length === 0) return;
      cancel();
      timers.current = BURST_DELAYS.map((delay) => window.setTimeout(reload, delay));
    },
    resync: reload,
  });
  useEffect(() => cancel, [cancel]);
}
