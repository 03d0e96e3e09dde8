import { useEffect, useMemo, useRef, useState } from "react";
import { Notice } from "../../../ui/Notice";
import { unhidden } from "../../../ui/unhidden";
import type { Action } from "../../history/history.logic";
import { PlanDialog } from "../../history/PlanDialog";
import type { Heard } from "./events";
import { conversation, pieces, type Item } from "./transcript.logic";

/** What was said and done. `sent` grows with each prompt of the owner's, who wants to see it then. */
export function Transcript({ heard, sent }: { heard: Heard; sent: number }) {
  const { events, streaming, problem, reload } = heard;
  const [action, setAction] = useState<Action | null>(null);
  const end = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const items = useMemo(() => conversation(events, streaming), [events, streaming]);

  useEffect(() => {
    follows.current = true;
  }, [sent]);
  useEffect(() => {
    if (follows.current) end.current?.scrollIntoView({ block: "end" });
  }, [items, sent]);

  return (
    <>
      <div
        className="talk"
        role="log"
        aria-label="Conversation"
        tabIndex={0}
        onScroll={(event) => {
          const at = event.currentTarget;
          follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < 80;
        }}
      >
        {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
        {items.length === 0 && problem === null && <p className="empty">Say what you would like done. Every file it changes can be taken back.</p>}
        {items.map((item) => (
          <Part key={item.key} item={item} onUndo={(entry) => setAction({ action: "revert", entry, choose: {} })} />
        ))}
        <div ref={end} />
      </div>
      {action && <PlanDialog action={action} onClose={() => setAction(null)} onDone={() => undefined} />}
    </>
  );
}

const DECIDED: Record<string, string> = {
  once: "You allowed this once",
  session: "You allowed this for the session",
  always: "You always allow this",
  reject: "You said no",
};

function Words({ text }: { text: string }) {
  return pieces(text).map((piece, index) => (piece.code ? <pre key={index}>{piece.text}</pre> : <p key={index}>{piece.text}</p>));
}

function Part({ item, onUndo }: { item: Item; onUndo: (entry: number) => void }) {
  switch (item.kind) {
    case "prompt":
      return (
        <div className="said mine">
          <Words text={item.text} />
        </div>
      );
    case "message":
      return (
        <div className="said" data-live={item.live || undefined}>
          <Words text={item.text} />
        </div>
      );
    case "thought":
      return (
        <details className="thought">
          <summary>Thought</summary>
          <p>{item.text}</p>
        </details>
      );
    case "tool":
      return (
        <details className="tool" data-status={item.status}>
          <summary>
            <span className="chip" data-tone={item.status === "failed" ? "alarm" : item.status === "completed" ? "leaf" : "amber"}>
              {item.status.replaceAll("_", " ")}
            </span>
            <span className="path">{unhidden(item.title)}</span>
          </summary>
          {item.content.map((content, index) => (
            <pre key={index}>{content.text}</pre>
          ))}
        </details>
      );
    case "plan":
      return (
        <ol className="plan card" aria-label="Plan">
          {item.entries.map((entry, index) => (
            <li key={index} data-status={entry.status}>
              {entry.content}
            </li>
          ))}
        </ol>
      );
    case "approval":
      return item.state === "pending" ? null : (
        <p className="quiet aside">
          {DECIDED[item.answer] ?? item.state}: <span className="path">{unhidden(item.title)}</span>
        </p>
      );
    case "ended":
      return (
        <p className="quiet aside">
          {item.words}
          {item.entry !== null && (
            <button className="text-button" onClick={() => item.entry !== null && onUndo(item.entry)}>
              Undo this turn
            </button>
          )}
        </p>
      );
    case "error":
      return <Notice problem={{ code: "session", message: item.text, hint: item.hint }} />;
  }
}
