import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Icon } from "../../../ui/Icon";
import { Notice } from "../../../ui/Notice";
import type { Action } from "../../history/history.logic";
import "../../history/history.css";
import { PlanDialog } from "../../history/PlanDialog";
import { RewindDialog } from "../../history/RewindDialog";
import { Sharing, type Shared } from "./context";
import type { SessionHeard } from "./events";
import { useFind } from "./find";
import { FindBar } from "./FindBar";
import { Part } from "./Part";
import { drawnKey, guessHeight, isWorking, transcript, withStreams } from "./transcript.logic";
import { useEntries } from "./turns";
import { fateOf, hasChanged } from "./turns.logic";

const NEAR_END = 80;
const NEAR_TOP = 12;
const MOST_READ_OUT = 500;

interface TranscriptProps {
  session: string;
  heard: SessionHeard;
  /** While its agent works: the number of the last event when that was told. */
  works: number | null;
  /** Grows with each prompt of the owner's, who wants to see it then. */
  sent: number;
}

/**
 * What was said and done. Only what is in view is drawn, however long it is; it follows the end while the owner is
 * there, and stays where they are when they are not.
 */
export function Transcript({ session, heard, works, sent }: TranscriptProps) {
  const { events, streams, seen, loaded, older, loadOlder, problem, reload } = heard;
  const [action, setAction] = useState<Action | null>(null);
  const [turn, setTurn] = useState<number | null>(null);
  const [folds, setFolds] = useState<ReadonlySet<string>>(new Set());
  const pane = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const follows = useRef(true);

  const settled = useMemo(() => transcript(events), [events]);
  const items = useMemo(() => withStreams(settled, streams), [settled, streams]);
  const ended = useMemo(() => new Set(settled.flatMap((item) => (item.kind === "ended" ? [item.turn] : []))), [settled]);
  const changed = useMemo(() => settled.some((item) => item.kind === "ended" && hasChanged(item.changes)), [settled]);
  const { entries, reload: reloadEntries } = useEntries(changed);

  const list = useVirtualizer({
    count: items.length,
    getScrollElement: () => pane.current,
    estimateSize: (index) => {
      const item = items[index];
      return item === undefined ? 48 : guessHeight(item);
    },
    getItemKey: (index) => {
      const item = items[index];
      return item === undefined ? index : drawnKey(item, seen);
    },
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: NEAR_END,
    overscan: 6,
    paddingStart: 28,
    // Room for the words of working: they come and go, and move nothing.
    paddingEnd: 44,
  });
  const rows = list.getVirtualItems();

  const goToEnd = useCallback(() => {
    follows.current = true;
    setAtEnd(true);
    list.scrollToEnd();
  }, [list]);
  const lastSeq = events.at(-1)?.seq ?? 0;
  const last = useRef(lastSeq);
  useEffect(() => {
    last.current = lastSeq;
  });
  // What is said after the owner's prompt is read out to who listens; what was there before is not.
  const [heardFrom, setHeardFrom] = useState(Infinity);
  useEffect(() => {
    if (sent === 0) return;
    goToEnd();
    setHeardFrom(last.current);
  }, [sent, goToEnd]);
  // The pane grows and shrinks with what stands below it: who was at the end stays there.
  useEffect(() => {
    const shown = pane.current;
    if (shown === null) return;
    const watcher = new ResizeObserver(() => {
      if (follows.current) list.scrollToEnd();
    });
    watcher.observe(shown);
    return () => watcher.disconnect();
  }, [list]);

  const bring = useCallback((index: number) => list.scrollToIndex(index, { align: "center" }), [list]);
  const find = useFind(items, bring);
  const first = rows[0]?.index ?? 0;
  const reading = older && find.open && find.looked.trim() !== "";
  useEffect(() => {
    if (older && loaded && items.length > 0 && (first < NEAR_TOP || reading)) loadOlder();
  }, [older, loaded, first, items.length, loadOlder, reading]);

  // How much there was when the owner left the end: what is more than that is new to them.
  const [left, setLeft] = useState(0);
  const top = useRef(0);
  const scrolled = useCallback(() => {
    const shown = pane.current;
    if (shown === null) return;
    const near = shown.scrollHeight - shown.scrollTop - shown.clientHeight < NEAR_END;
    // Only who goes up leaves the end: words that come faster than they are followed do not leave anybody behind.
    const away = !near && shown.scrollTop < top.current;
    top.current = shown.scrollTop;
    if (!near && !away) return;
    if (near || follows.current) setLeft(lastSeq);
    follows.current = near;
    setAtEnd(near);
  }, [lastSeq]);

  const shared = useMemo<Shared>(
    () => ({
      session,
      folds,
      fold: (key) =>
        setFolds((before) => {
          const after = new Set(before);
          if (!after.delete(key)) after.add(key);
          return after;
        }),
      ended,
      fateOf: (of, changes) => fateOf(entries, session, of, changes),
      act: setAction,
      rewind: setTurn,
    }),
    [session, folds, ended, entries],
  );
  const said = settled.findLast((item) => item.kind === "message");

  return (
    <Sharing value={shared}>
      <div className="talk-frame">
        {find.open && (
          <FindBar
            looked={find.looked}
            at={find.at}
            count={find.count}
            reading={reading}
            onLook={find.look}
            onStep={find.step}
            onClose={() => {
              find.close();
              pane.current?.focus();
            }}
          />
        )}
        <div ref={pane} className="talk" role="log" aria-label="Conversation" aria-live="off" aria-busy={!loaded} tabIndex={0} onScroll={scrolled}>
          {problem && (
            <div className="talk-problem">
              <Notice problem={problem} action={{ label: "Try again", run: reload }} />
            </div>
          )}
          {loaded && items.length === 0 && (
            <div className="talk-empty">
              <Icon name="talk" size={32} />
              <p>Say what you would like done.</p>
              <p className="quiet">Every file it changes can be taken back.</p>
            </div>
          )}
          <div className="talk-space" style={{ height: list.getTotalSize() }}>
            {older && <p className="talk-older">Older messages…</p>}
            {rows.map((row) => {
              const item = items[row.index];
              if (item === undefined) return null;
              return (
                <div key={row.key} ref={list.measureElement} className="talk-row" data-index={row.index} data-kind={item.kind} data-found={item.key === find.key || undefined} style={{ transform: `translateY(${row.start}px)` }}>
                  <Part item={item} />
                </div>
              );
            })}
            {isWorking(settled, works) && (
              <p className="works">
                <span aria-hidden="true" className="works-dots">
                  <i />
                  <i />
                  <i />
                </span>
                Working…
              </p>
            )}
          </div>
        </div>
        {!atEnd && items.length > 0 && (
          <button className="talk-latest" onClick={goToEnd}>
            <Icon name="down" size={16} /> {lastSeq > left || streams.size > 0 ? "New messages" : "Latest"}
          </button>
        )}
      </div>
      <p className="unseen" aria-live="polite">
        {said?.kind === "message" && said.seq > heardFrom ? said.text.slice(0, MOST_READ_OUT) : ""}
      </p>
      {action && <PlanDialog action={action} onClose={() => setAction(null)} onDone={reloadEntries} />}
      {turn !== null && <RewindDialog turn={{ session, turn }} onClose={() => setTurn(null)} onDone={reloadEntries} />}
    </Sharing>
  );
}
