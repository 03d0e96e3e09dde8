import { Fragment, useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { HistoryEntry, HistoryPage as Page } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { useNow } from "../../ui/answers";
import { Icon } from "../../ui/Icon";
import { dayOf } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { useTopic } from "../shell/live";
import { go, useRoute } from "../shell/route";
import { EntryRow } from "./EntryRow";
import { inEffect, type Action } from "./history.logic";
import { PlanDialog } from "./PlanDialog";
import { Recorder } from "./Recorder";
import "./history.css";

const PIECE = 60;
// A burst of changes becomes one entry when it is over; looking sooner than this finds nothing more.
const SETTLE = 250;
const UNTIL_QUIET = [600, 1_500, 3_000];

export function HistoryPage() {
  const { query } = useRoute();
  const view = query.get("view") === "everything" ? "everything" : "files";
  return (
    <div className="column">
      <header className="head">
        <h1>History</h1>
        <div className="tabs" role="tablist" aria-label="What to show">
          <button role="tab" aria-selected={view === "files"} onClick={() => go("/history")}>
            Files
          </button>
          <button role="tab" aria-selected={view === "everything"} onClick={() => go("/history?view=everything")}>
            Everything
          </button>
        </div>
      </header>
      {view === "files" ? <Entries /> : <Recorder />}
    </div>
  );
}

function Entries() {
  const { query } = useRoute();
  const asksUndo = query.get("undo") === "last";
  const [entries, setEntries] = useState<HistoryEntry[] | null>(null);
  const [older, setOlder] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [action, setAction] = useState<Action | null>(null);
  const now = useNow();

  const load = useCallback(async () => {
    try {
      const page = await request<Page>(`/v1/history?limit=${PIECE}`);
      setProblem(null);
      setEntries((before) => {
        const oldest = page.entries.at(-1)?.id ?? 0;
        const rest = before?.filter((entry) => entry.id < oldest) ?? [];
        if (rest.length === 0) setOlder(page.entries.length === PIECE);
        return [...page.entries, ...rest];
      });
    } catch (error) {
      setProblem(problemOf(error));
    }
  }, []);
  const loadOlder = useCallback(async (before: number) => {
    try {
      const page = await request<Page>(`/v1/history?limit=${PIECE}&before=${before}`);
      setOlder(page.entries.length === PIECE);
      setEntries((held) => [...(held ?? []), ...page.entries.filter((entry) => !held?.some((one) => one.id === entry.id))]);
    } catch (error) {
      setProblem(problemOf(error));
    }
  }, []);

  const timers = useRef<number[]>([]);
  const soon = useCallback(
    (waits: readonly number[]) => {
      timers.current.forEach(clearTimeout);
      timers.current = waits.map((wait) => window.setTimeout(() => void load(), wait));
    },
    [load],
  );
  useEffect(() => {
    void load();
    return () => timers.current.forEach(clearTimeout);
  }, [load]);
  useTopic("files", {
    event: (data) => {
      if ((data as { items?: unknown[] }).items?.length !== 0) soon(UNTIL_QUIET);
    },
    resync: () => void load(),
  });
  useTopic(
    "timeline",
    {
      event: (data) => {
        if (String((data as { kind?: unknown }).kind).startsWith("history.")) soon([SETTLE]);
      },
      resync: () => void load(),
    },
    { durable: true },
  );

  useEffect(() => {
    if (!asksUndo) return;
    go("/history", { replace: true });
    setAction({ action: "undo" });
  }, [asksUndo]);

  const effective = useMemo(() => inEffect(entries ?? []), [entries]);
  const newest = entries?.[0];
  let day = "";

  return (
    <>
      <div className="toolbar">
        <button className="primary" disabled={newest === undefined} onClick={() => setAction({ action: "undo" })}>
          <Icon name="undo" size={18} /> Undo last change
        </button>
        <button disabled={newest?.kind !== "undo"} onClick={() => setAction({ action: "redo" })}>
          <Icon name="redo" size={18} /> Redo
        </button>
      </div>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: () => void load() }} />}
      {entries === null && problem === null && <p className="quiet">Reading history…</p>}
      {entries?.length === 0 && <p className="empty">Nothing has changed yet. Every change to a file will be here, with the way back.</p>}
      <ol className={`entries${problem ? " stale" : ""}`} aria-label="Entries, the newest first">
        {entries?.map((entry) => {
          const of = dayOf(entry.at, now);
          const begins = of !== day;
          day = of;
          return (
            <Fragment key={entry.id}>
              {begins && (
                <li className="day">{of}</li>
              )}
              <EntryRow entry={entry} effective={effective.has(entry.id)} newest={entry === newest} onAct={setAction} />
            </Fragment>
          );
        })}
      </ol>
      {older && entries !== null && entries.length > 0 && (
        <button className="more" onClick={() => void loadOlder(entries.at(-1)?.id ?? 1)}>
          Show older
        </button>
      )}
      {action && <PlanDialog action={action} onClose={() => setAction(null)} onDone={() => void load()} />}
    </>
  );
}
