import { useVirtualizer } from "@tanstack/react-virtual";
import { startTransition, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { afterPaint } from "../../../client/afterPaint";
import type { HistoryEntry } from "../../../client/api";
import { Icon } from "../../../ui/Icon";
import { Notice } from "../../../ui/Notice";
import type { HistoryAction } from "../../history/history.logic";
import { PlanDialog } from "../../history/PlanDialog";
import { RewindDialog } from "../../history/RewindDialog";
import { FindBar } from "./FindBar";
import { TranscriptItem } from "./TranscriptItem";
import { drawKey, estimateHeight, type Item, isWorking, transcriptItems, withStreams } from "./transcript.logic";
import { TranscriptContext, type TranscriptShared } from "./transcriptContext";
import { hasChanged, turnState } from "./turnState.logic";
import { useFind } from "./useFind";
import { useRecentEntries } from "./useRecentEntries";
import { NEAR_END, type ScrollState, useScrollToEnd } from "./useScrollToEnd";
import type { LoadedEvents } from "./useSessionEvents";
import { WaitingLabel } from "./WaitingLabel";

/** Items from the top at which older ones are loaded. */
const LOAD_OLDER_AT = 12;
const MAX_ANNOUNCED = 500;
/** Items out of sight that are drawn beside those in sight. */
const OVERSCAN = 6;
/** About the height of the transcript, until it is measured. */
const HEIGHT_AT_FIRST = Math.round(innerHeight * 0.75);
const NO_ENTRIES: readonly HistoryEntry[] = [];

interface TranscriptProps {
  session: string;
  loaded: LoadedEvents;
  /** The last event when the session was reported as working; null when it is not. */
  workingAsOf: number | null;
  /** Its place in the queue in a sentence, while its agent may not start yet. */
  waiting: string | null;
  /** Grows with each prompt of the owner. The transcript then scrolls to its end. */
  promptsSent: number;
  /** The owner has stopped the agent, and it has not ended yet. */
  isStopping: boolean;
}

/**
 * The items of a session. Only those in view are drawn. The end is followed while the owner is there, and the position
 * is kept while they are not.
 */
export function Transcript({
  session,
  loaded: loadedEvents,
  workingAsOf,
  waiting,
  promptsSent,
  isStopping,
}: TranscriptProps) {
  const { events, streams, streamedKeys, loaded, hasOlder, loadOlder, problem, reload } = loadedEvents;
  const [action, setAction] = useState<HistoryAction | null>(null);
  const [rewindTurn, setRewindTurn] = useState<number | null>(null);
  const pane = useRef<HTMLDivElement>(null);
  const isPainted = useIsPainted(loaded);

  const settled = useMemo(() => transcriptItems(events), [events]);
  const items = useMemo(() => withStreams(settled, streams), [settled, streams]);
  const anyChanges = useMemo(
    () => settled.some((item) => item.kind === "ended" && hasChanged(item.changes)),
    [settled],
  );
  const { value: entries, reload: reloadEntries } = useRecentEntries(anyChanges);

  const list = useVirtualizer({
    count: items.length,
    // It begins with the items, at their end. Without them it would draw the first ones and then go to the last ones.
    enabled: loaded,
    initialRect: { width: 0, height: HEIGHT_AT_FIRST },
    initialOffset: (): number => Math.max(0, list.getTotalSize() - HEIGHT_AT_FIRST),
    getScrollElement: () => pane.current,
    estimateSize: (index) => {
      const item = items[index];
      return item === undefined ? 48 : estimateHeight(item);
    },
    getItemKey: (index) => {
      const item = items[index];
      return item === undefined ? index : drawKey(item, streamedKeys);
    },
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: NEAR_END,
    overscan: isPainted ? OVERSCAN : 0,
    paddingStart: 28,
    // Space for "Working…", so that it moves nothing when it appears. A place in the queue needs some lines.
    paddingEnd: waiting === null ? 44 : 132,
  });
  const rows = list.getVirtualItems();
  // Where it begins is an estimate. Before the first paint the rows are measured, and their end is where it is.
  useLayoutEffect(() => {
    if (loaded) list.scrollToEnd();
  }, [loaded, list]);
  const lastSeq = events.at(-1)?.seq ?? 0;
  const scroll = useScrollToEnd(pane, list, lastSeq, promptsSent);

  const scrollToItem = useCallback((index: number) => list.scrollToIndex(index, { align: "center" }), [list]);
  const find = useFind(items, scrollToItem);
  const firstIndex = rows[0]?.index ?? 0;
  const isSearchingOlder = hasOlder && find.open && find.query.trim() !== "";
  useEffect(() => {
    if (hasOlder && loaded && items.length > 0 && (firstIndex < LOAD_OLDER_AT || isSearchingOlder)) loadOlder();
  }, [hasOlder, loaded, firstIndex, items.length, loadOlder, isSearchingOlder]);

  const shared = useShared(session, settled, entries ?? NO_ENTRIES, setAction, setRewindTurn);
  return (
    <TranscriptContext value={shared}>
      <div className="conversation-frame">
        {find.open && (
          <FindBar
            find={find}
            loading={isSearchingOlder}
            onClose={() => {
              find.close();
              pane.current?.focus();
            }}
          />
        )}
        <div
          ref={pane}
          className="conversation-pane"
          role="log"
          aria-label="Conversation"
          aria-live="off"
          aria-busy={!loaded}
          tabIndex={0}
          onScroll={scroll.onScroll}
        >
          {problem && (
            <div className="conversation-problem">
              <Notice problem={problem} action={{ label: "Try again", run: reload }} />
            </div>
          )}
          {loaded && items.length === 0 && <EmptyTranscript />}
          <div className="conversation-rows" style={{ height: list.getTotalSize() }}>
            {hasOlder && <p className="conversation-older">Loading older messages…</p>}
            {rows.map((row) => {
              const item = items[row.index];
              if (item === undefined) return null;
              return (
                <div
                  key={row.key}
                  ref={list.measureElement}
                  className="conversation-row"
                  data-index={row.index}
                  data-kind={item.kind}
                  data-found={item.key === find.key || undefined}
                  style={{ transform: `translateY(${row.start}px)` }}
                >
                  <TranscriptItem item={item} />
                </div>
              );
            })}
            {waiting === null ? (
              isWorking(settled, workingAsOf) && <WorkingLabel isStopping={isStopping} />
            ) : (
              <WaitingLabel message={waiting} />
            )}
          </div>
        </div>
        {!scroll.isAtEnd && items.length > 0 && (
          <button type="button" className="conversation-latest" onClick={scroll.toEnd}>
            <Icon name="down" size={16} />{" "}
            {scroll.hasNew || streams.size > 0 ? "Show new messages" : "Go to the latest message"}
          </button>
        )}
      </div>
      <Announcement items={settled} scroll={scroll} />
      {action && <PlanDialog action={action} onClose={() => setAction(null)} onDone={reloadEntries} />}
      {rewindTurn !== null && (
        <RewindDialog turn={{ session, turn: rewindTurn }} onClose={() => setRewindTurn(null)} onDone={reloadEntries} />
      )}
    </TranscriptContext>
  );
}

/** Whether what is in sight was painted. What is out of sight follows in short steps. */
function useIsPainted(loaded: boolean): boolean {
  const [isPainted, setPainted] = useState(false);
  useEffect(() => {
    if (loaded) return afterPaint(() => startTransition(() => setPainted(true)));
  }, [loaded]);
  return isPainted;
}

/** What the items of the transcript share. It changes only when they must be drawn again. */
function useShared(
  session: string,
  items: readonly Item[],
  entries: readonly HistoryEntry[],
  onAction: (action: HistoryAction) => void,
  onRewind: (turn: number) => void,
): TranscriptShared {
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const toggle = useCallback(
    (key: string) =>
      setToggled((before) => {
        const after = new Set(before);
        if (!after.delete(key)) after.add(key);
        return after;
      }),
    [],
  );
  const endedTurns = useMemo(
    () => new Set(items.flatMap((item) => (item.kind === "ended" ? [item.turn] : []))),
    [items],
  );
  const lastPrompt = useMemo(() => items.findLast((item) => item.kind === "prompt") ?? null, [items]);
  return useMemo(
    () => ({
      session,
      toggled,
      toggle,
      endedTurns,
      lastPrompt,
      turnStateOf: (turn, changes) => turnState(entries, session, turn, changes),
      onAction,
      onRewind,
    }),
    [session, toggled, toggle, endedTurns, lastPrompt, entries, onAction, onRewind],
  );
}

function EmptyTranscript() {
  return (
    <div className="conversation-empty">
      <Icon name="talk" size={32} />
      <p>Describe a task to start.</p>
      <p className="quiet">You can undo every file change that the agent makes.</p>
    </div>
  );
}

function WorkingLabel({ isStopping }: { isStopping: boolean }) {
  return (
    <p className="conversation-working" role={isStopping ? "status" : undefined}>
      <span aria-hidden="true" className="conversation-dots">
        <i />
        <i />
        <i />
      </span>
      {isStopping ? "Stopping…" : "Working…"}
    </p>
  );
}

/** Reads the newest message to a screen reader when it came after the owner's last prompt. */
function Announcement({ items, scroll }: { items: readonly Item[]; scroll: ScrollState }) {
  const message = items.findLast((item) => item.kind === "message");
  const isNew = message?.kind === "message" && message.seq > scroll.promptSeq;
  return (
    <p className="visually-hidden" aria-live="polite">
      {isNew ? message.text.slice(0, MAX_ANNOUNCED) : ""}
    </p>
  );
}
