import { useCallback, useEffect, useRef, useState } from "react";
import type { HistoryEntry, HistoryPage } from "../../../client/api";
import { request } from "../../../client/http";
import { useTopic } from "../../shell/live";

const NEWEST = 200;
const SETTLE = 250;

/** The newest entries of history, as they come; nothing is asked until something is `wanted`. */
export function useEntries(wanted: boolean): { entries: readonly HistoryEntry[]; reload: () => void } {
  const [entries, setEntries] = useState<readonly HistoryEntry[]>([]);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const load = useCallback(() => {
    // A history that cannot be read says so where something is done with it.
    request<HistoryPage>(`/v1/history?limit=${NEWEST}`).then((page) => setEntries(page.entries), () => undefined);
  }, []);
  useEffect(() => {
    if (wanted) load();
    return () => clearTimeout(timer.current);
  }, [wanted, load]);
  useTopic(
    "timeline",
    {
      event: (data) => {
        if (!wanted || !String((data as { kind?: unknown }).kind).startsWith("history.")) return;
        clearTimeout(timer.current);
        timer.current = setTimeout(load, SETTLE);
      },
      resync: () => {
        if (wanted) load();
      },
    },
    { durable: true },
  );
  return { entries, reload: load };
}
