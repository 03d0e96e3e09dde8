import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { EventPage, HistoryEntry, HistoryPage } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { useTopic } from "../shell/live";
import { behind, kindsOf, withEvents, withNewest, type Group, type Recorded, type Source } from "./timeline.logic";

const PIECE = 60;
const EVENTS = 200;
// A burst of changes becomes one entry when it is over; looking sooner than this finds nothing more.
const SETTLE = 250;
const UNTIL_QUIET = [600, 1_500, 3_000];
const FROM_THE_END = Number.MAX_SAFE_INTEGER;

interface Held {
  key: string;
  entries: Source<HistoryEntry> | null;
  events: Source<Recorded> | null;
}

export interface Timeline {
  /** Null while they were not asked for; newest first. */
  entries: Source<HistoryEntry> | null;
  events: Source<Recorded> | null;
  /** Whether everything that is shown at first has come. */
  ready: boolean;
  more: boolean;
  problem: Problem | null;
  reload: () => void;
  loadMore: () => void;
}

/** Entries of history and events of the timeline, kept up to date; with a path, the entries that touched it. */
export function useTimeline(groups: readonly Group[], path: string | null): Timeline {
  const key = `${groups.join(",")} ${path ?? ""}`;
  const [held, setHeld] = useState<Held>({ key, entries: null, events: null });
  const [problem, setProblem] = useState<Problem | null>(null);
  const loading = useRef("");
  const current = held.key === key ? held : { key, entries: null, events: null };
  const wantsEvents = path === null;
  const kinds = useMemo(() => kindsOf(groups), [key]);

  const put = useCallback(
    (change: (before: Held) => Partial<Held>) => {
      setProblem(null);
      setHeld((before) => {
        const base = before.key === key ? before : { key, entries: null, events: null };
        return { ...base, ...change(base) };
      });
    },
    [key],
  );
  const askEntries = useCallback(
    (before: number | null) => request<HistoryPage>(`/v1/history?limit=${PIECE}${before === null ? "" : `&before=${before}`}${path === null ? "" : `&path=${encodeURIComponent(path)}`}`),
    [path],
  );
  const askEvents = useCallback(
    (before: number) => request<EventPage>(`/v1/timeline?before=${before}&limit=${EVENTS}${(kinds ?? []).map((kind) => `&kind=${kind}`).join("")}`),
    [kinds],
  );

  const loadEntries = useCallback(async () => {
    try {
      const page = await askEntries(null);
      put(({ entries }) => {
        const items = withNewest(entries?.items ?? [], page.entries);
        return { entries: { items, more: items.length > page.entries.length ? (entries?.more ?? false) : page.entries.length === PIECE } };
      });
    } catch (error) {
      setProblem(problemOf(error));
    }
  }, [askEntries, put]);
  const loadEvents = useCallback(async () => {
    try {
      const page = await askEvents(FROM_THE_END);
      put(({ events }) => {
        const reaches = events !== null && page.events.some((event) => event.seq <= (events.items[0]?.seq ?? 0));
        return { events: reaches ? { items: withEvents(events.items, page.events), more: events.more } : { items: withEvents([], page.events), more: page.next !== null } };
      });
    } catch (error) {
      setProblem(problemOf(error));
    }
  }, [askEvents, put]);
  const reload = useCallback(() => {
    void loadEntries();
    if (wantsEvents) void loadEvents();
  }, [loadEntries, loadEvents, wantsEvents]);

  const loadMore = useCallback(() => {
    const { entries, events } = current;
    const which = behind(entries, events);
    const before = which === "entries" ? entries?.items.at(-1)?.id : events?.items.at(-1)?.seq;
    const asked = `${key} ${which} ${before}`;
    if (which === null || before === undefined || loading.current === asked) return;
    loading.current = asked;
    const answer =
      which === "entries"
        ? askEntries(before).then((page) =>
            put((now) => ({ entries: { items: [...(now.entries?.items ?? []), ...page.entries.filter((one) => one.id < before)], more: page.entries.length === PIECE } })),
          )
        : askEvents(before).then((page) => put((now) => ({ events: { items: withEvents(now.events?.items ?? [], page.events), more: page.next !== null } })));
    answer.catch((error: unknown) => {
      loading.current = "";
      setProblem(problemOf(error));
    });
  }, [current, key, askEntries, askEvents, put]);

  const timers = useRef<number[]>([]);
  const soon = useCallback(
    (waits: readonly number[]) => {
      timers.current.forEach(clearTimeout);
      timers.current = waits.map((wait) => window.setTimeout(() => void loadEntries(), wait));
    },
    [loadEntries],
  );
  useEffect(() => {
    reload();
    return () => timers.current.forEach(clearTimeout);
  }, [reload]);
  useTopic("files", {
    event: (data) => {
      if ((data as { items?: unknown[] }).items?.length !== 0) soon(UNTIL_QUIET);
    },
    resync: reload,
  });
  useTopic(
    "timeline",
    {
      event: (data) => {
        const event = data as Recorded;
        if (event.kind.startsWith("history.") || event.kind === "turn.ended") soon([SETTLE]);
        if (wantsEvents) put(({ events }) => (events === null ? {} : { events: { items: withEvents(events.items, [event]), more: events.more } }));
      },
      resync: reload,
    },
    { durable: true },
  );

  return {
    entries: current.entries,
    events: wantsEvents ? current.events : null,
    ready: current.entries !== null && (!wantsEvents || current.events !== null),
    more: behind(groups.includes("files") || path !== null ? current.entries : null, wantsEvents ? current.events : null) !== null,
    problem,
    reload,
    loadMore,
  };
}
