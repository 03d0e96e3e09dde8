import { useCallback, useEffect, useMemo, useRef, useState, type FormEvent } from "react";
import type { SessionEvent, SessionEvents, SessionView } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { PlanDialog } from "../history/PlanDialog";
import type { Action } from "../history/history.logic";
import { useTopic } from "../shell/live";
import { conversation, pieces, unhidden, type Delta, type Item } from "./conversation.logic";

const PIECE = 1_000;
const MOST_PIECES = 10;
const draftKey = (id: string) => `freehold.draft.${id}`;

async function readAll(id: string): Promise<SessionEvent[]> {
  const all: SessionEvent[] = [];
  let after: number | null = 0;
  for (let piece = 0; piece < MOST_PIECES && after !== null; piece++) {
    const page: SessionEvents = await request<SessionEvents>(`/v1/sessions/${encodeURIComponent(id)}/events?after=${after}&limit=${PIECE}`);
    all.push(...page.events);
    after = page.next;
  }
  return all;
}

/** One session: what was said and done, and the place to say more. */
export function Conversation({ id, session, onClose }: { id: string; session: SessionView | null; onClose: () => void }) {
  const [events, setEvents] = useState<ReadonlyMap<number, SessionEvent>>(new Map());
  const [streaming, setStreaming] = useState<ReadonlyMap<string, Delta>>(new Map());
  const [problem, setProblem] = useState<Problem | null>(null);
  const [text, setText] = useState(() => sessionStorage.getItem(draftKey(id)) ?? "");
  const [action, setAction] = useState<Action | null>(null);
  const toasts = useToasts();
  const end = useRef<HTMLDivElement>(null);
  const pane = useRef<HTMLDivElement>(null);
  const follows = useRef(true);

  const add = useCallback((more: readonly SessionEvent[]) => setEvents((held) => new Map([...held, ...more.map((event) => [event.seq, event] as const)])), []);
  const load = useCallback(() => {
    readAll(id)
      .then((all) => {
        add(all);
        setProblem(null);
      })
      .catch((error: unknown) => setProblem(problemOf(error)));
  }, [id, add]);
  useTopic(
    `session:${id}`,
    {
      subscribed: load,
      resync: load,
      event: (data) => {
        const event = data as SessionEvent;
        add([event]);
        if (event.kind === "turn.ended") setStreaming(new Map());
      },
      delta: (data) => {
        const delta = data as Delta;
        const key = `${delta.kind} ${delta.id}`;
        setStreaming((held) => new Map(held).set(key, { ...delta, text: (held.get(key)?.text ?? "") + delta.text }));
      },
    },
    { durable: true },
  );

  const items = useMemo(() => conversation([...events.values()].sort((a, b) => a.seq - b.seq), streaming), [events, streaming]);
  const waiting = items.filter((item) => item.kind === "approval" && item.state === "pending");
  const busy = session?.status === "working" || session?.status === "needs_you";

  useEffect(() => {
    if (follows.current) end.current?.scrollIntoView({ block: "end" });
  }, [items]);

  const post = useCallback(
    async (path: string, body: object): Promise<boolean> => {
      try {
        await request(path, { method: "POST", body });
        return true;
      } catch (error) {
        toasts.failed(error);
        return false;
      }
    },
    [toasts],
  );

  function type(words: string) {
    setText(words);
    sessionStorage.setItem(draftKey(id), words);
  }

  async function send(event?: FormEvent) {
    event?.preventDefault();
    const words = text.trim();
    if (words === "") return;
    follows.current = true;
    const body = { text: words, key: crypto.randomUUID(), when: busy ? "queue" : "now" };
    if (await post(`/v1/sessions/${encodeURIComponent(id)}/prompt`, body)) type("");
  }

  return (
    <section className="file conversation" aria-label={session?.title || "Session"}>
      <header className="file-head">
        <button className="plain-button back" onClick={onClose} aria-label="Back to the sessions">
          <Icon name="back" />
        </button>
        <h2>{session?.title || "New session"}</h2>
        {busy && (
          <button className="small danger" onClick={() => void post(`/v1/sessions/${encodeURIComponent(id)}/cancel`, {})}>
            Stop
          </button>
        )}
      </header>
      <div
        ref={pane}
        className="talk"
        role="log"
        aria-label="Conversation"
        tabIndex={0}
        onScroll={(event) => {
          const at = event.currentTarget;
          follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < 80;
        }}
      >
        {problem && <Notice problem={problem} action={{ label: "Try again", run: load }} />}
        {items.length === 0 && problem === null && <p className="empty">Say what you would like done. Every file it changes can be taken back.</p>}
        {items.map((item) => (
          <Part key={item.key} item={item} onUndo={(entry) => setAction({ action: "revert", entry, choose: {} })} />
        ))}
        <div ref={end} />
      </div>
      {waiting.map(
        (item) =>
          item.kind === "approval" && (
            <section key={item.id} className="bar approval" data-tone="amber" role="alertdialog" aria-label="The agent asks">
              <p>
                The agent asks: <strong>{unhidden(item.title)}</strong>
              </p>
              {item.details.filter(([, value]) => value !== item.title).map(([name, value]) => (
                <pre key={name} aria-label={name}>
                  {unhidden(value)}
                </pre>
              ))}
              <div className="replies">
                {(["once", "session", "always", "reject"] as const).map((answer) => (
                  <button key={answer} className="small" onClick={() => void post(`/v1/approvals/${encodeURIComponent(item.id)}`, { answer })}>
                    {ANSWERS[answer]}
                  </button>
                ))}
              </div>
            </section>
          ),
      )}
      <form className="composer" onSubmit={(event) => void send(event)}>
        <textarea
          aria-label="Message"
          placeholder={busy ? "Say what comes next; it waits until this is done" : "What shall be done?"}
          rows={2}
          value={text}
          onChange={(event) => type(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
              event.preventDefault();
              void send();
            } else if (event.key === "Escape" && busy) void post(`/v1/sessions/${encodeURIComponent(id)}/cancel`, {});
          }}
        />
        <button className="primary" disabled={text.trim() === ""}>
          {busy ? "Queue" : "Send"}
        </button>
      </form>
      {action && <PlanDialog action={action} onClose={() => setAction(null)} onDone={() => undefined} />}
    </section>
  );
}

const DECIDED: Record<string, string> = {
  once: "You allowed this once",
  session: "You allowed this for the session",
  always: "You always allow this",
  reject: "You said no",
};
const ANSWERS = { once: "Once", session: "This session", always: "Always", reject: "No" } as const;

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
