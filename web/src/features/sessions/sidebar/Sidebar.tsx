import { useEffect, useRef, useState, type KeyboardEvent, type MouseEvent } from "react";
import type { SessionPage, SessionView } from "../../../client/api";
import { request } from "../../../client/http";
import { useAnswer, useNow } from "../../../ui/answers";
import { Icon } from "../../../ui/Icon";
import { ActionMenu } from "../../../ui/Menu";
import { ago, fullMoment } from "../../../ui/moments";
import { Notice } from "../../../ui/Notice";
import { useToasts } from "../../../ui/Toasts";
import { unhidden } from "../../../ui/unhidden";
import { RulesDialog } from "../../approvals/RulesDialog";
import { turnOff, turnOn, useNotifying } from "../../notify/permission";
import { go } from "../../shell/route";
import { useStop } from "../../stop/stop";
import { useRoster } from "../roster";
import { standing } from "../roster.logic";
import { NewSessionDialog } from "./NewSessionDialog";
import { useNewSession } from "./newSession";
import { SessionMenu } from "./SessionMenu";

const PIECE = 200;
const addressOf = (session: SessionView) => `/sessions?id=${encodeURIComponent(session.id)}`;

/** Every session and how it stands, and the way to a new one. */
export function Sidebar({ chosen }: { chosen: string | null }) {
  const [typed, setTyped] = useState("");
  const [archived, setArchived] = useState(false);
  const [dialog, setDialog] = useState<"new" | "rules" | null>(null);
  const now = useNow();
  const roster = useRoster();
  const found = useFound(typed.trim(), archived);
  const older = useOlder();
  const open = useNewSession();
  const stop = useStop();
  const notifying = useNotifying();
  const toasts = useToasts();
  const searches = typed.trim() !== "" || archived;
  const rows = searches ? found.rows : roster.rows === null ? null : [...roster.rows, ...older.rows.filter((row) => !roster.rows?.some((one) => one.id === row.id))];
  const problem = searches ? found.problem : roster.problem;

  async function notify() {
    const now = await turnOn();
    toasts.done(now === "on" ? "You are called when an agent needs you or is done" : "This browser lets Freehold send no notifications");
  }

  return (
    <aside className="tree-pane sidebar" aria-label="Sessions">
      <div className="tree-head">
        <h1>Sessions</h1>
        <ActionMenu
          label="More about sessions"
          entries={[
            { label: archived ? "Show those that are not archived" : "Show the archive", icon: "folder", run: () => setArchived(!archived) },
            { label: "What agents may do…", icon: "key", run: () => setDialog("rules") },
            ...(notifying === "on" ? [{ label: "Send no notifications", icon: "talk" as const, run: turnOff }] : notifying === "absent" || notifying === "denied" ? [] : [{ label: "Notify me", icon: "talk" as const, run: () => void notify() }]),
            stop.value?.stopped ? { label: "Let agents work again", icon: "redo", apart: true, run: () => void stop.lift() } : { label: "Stop every agent now", icon: "warning", danger: true, apart: true, run: () => void stop.stop("") },
          ]}
        />
        <div className="split">
          <button className="small primary" onClick={() => void open()}>
            <Icon name="plus" size={16} /> New
          </button>
          <button className="small primary" aria-label="New with a choice of agent and model" title="Choose agent and model" onClick={() => setDialog("new")}>
            <Icon name="chevron" size={16} />
          </button>
        </div>
      </div>
      <input className="tree-search" type="search" placeholder="Find in titles and words" aria-label="Find a session" value={typed} onChange={(event) => setTyped(event.target.value)} />
      {archived && (
        <p className="sidebar-note">
          The archive{" "}
          <button className="text-button" onClick={() => setArchived(false)}>
            Back to the others
          </button>
        </p>
      )}
      {problem && <Notice problem={problem} action={{ label: "Try again", run: searches ? found.reload : roster.reload }} />}
      {rows?.length === 0 && <p className="empty tree-note">{typed.trim() !== "" ? "No session has these words." : archived ? "Nothing is archived." : "No sessions yet. Start one to talk to an agent."}</p>}
      <ul className="session-list" onKeyDown={step}>
        {rows?.map((row) => (
          <SessionItem key={row.id} session={row} current={row.id === chosen} now={now} />
        ))}
      </ul>
      {!searches && older.more && (
        <button className="text-button" onClick={() => void older.load(rows ?? [])}>
          Older sessions
        </button>
      )}
      {dialog === "new" && <NewSessionDialog onClose={() => setDialog(null)} />}
      {dialog === "rules" && <RulesDialog onClose={() => setDialog(null)} />}
    </aside>
  );
}

function SessionItem({ session, current, now }: { session: SessionView; current: boolean; now: number }) {
  const at = new Date(session.updated).getTime() / 1000;
  const stands = standing(current ? { ...session, unread: false } : session);
  const unread = session.unread && !current;
  return (
    <li data-status={session.status} data-unread={unread || undefined} data-current={current || undefined}>
      <a href={addressOf(session)} aria-current={current ? "true" : undefined} onClick={(event) => follow(event, addressOf(session))}>
        <span className="session-title" title={unhidden(session.title)}>
          {unhidden(session.title) || "New session"}
        </span>
        <span className="session-about">
          {session.agent} · <time title={fullMoment(at)}>{ago(at, now)}</time>
        </span>
        {stands && (
          <span className="chip" data-tone={stands.tone}>
            {session.status === "working" && <span className="spinner" aria-hidden="true" />}
            {stands.words}
          </span>
        )}
        {unread && (
          <span className="unread">
            <span className="unseen">unread</span>
          </span>
        )}
      </a>
      <SessionMenu session={session} className="plain-button session-more" />
    </li>
  );
}

/** What holds these words, or is archived; asked again when a session changes. While it is asked the last answer stays. */
function useFound(words: string, archived: boolean): { rows: readonly SessionView[] | null; problem: ReturnType<typeof useAnswer>["problem"]; reload: () => void } {
  const wanted = words !== "" || archived;
  const { value, problem, reload } = useAnswer<SessionPage>(wanted ? `/v1/sessions?limit=${PIECE}&archived=${archived}&query=${encodeURIComponent(words)}` : null);
  const { rows } = useRoster();
  const last = useRef<readonly SessionView[] | null>(null);
  useEffect(() => {
    if (wanted) reload();
  }, [rows, wanted, reload]);
  useEffect(() => {
    last.current = wanted ? (value?.sessions ?? last.current) : null;
  });
  return { rows: value?.sessions ?? last.current, problem, reload };
}

/** Those beyond the first piece, as far as they were asked for. */
function useOlder(): { rows: readonly SessionView[]; more: boolean; load: (shown: readonly SessionView[]) => Promise<void> } {
  const roster = useRoster();
  const toasts = useToasts();
  const [rows, setRows] = useState<readonly SessionView[]>([]);
  const [end, setEnd] = useState(false);
  async function load(shown: readonly SessionView[]) {
    const last = shown.at(-1);
    if (last === undefined) return;
    try {
      const page = await request<SessionPage>(`/v1/sessions?limit=${PIECE}&cursor=${encodeURIComponent(`${last.updated} ${last.id}`)}`);
      setRows((before) => [...before, ...page.sessions]);
      setEnd(page.next === null);
    } catch (error) {
      toasts.failed(error);
    }
  }
  return { rows, more: !end && (roster.rows?.length ?? 0) >= PIECE, load };
}

function follow(event: MouseEvent, to: string) {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(to);
}

/** The arrows walk from session to session. */
function step(event: KeyboardEvent<HTMLUListElement>) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>("li > a")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  const next = links[at + (event.key === "ArrowDown" ? 1 : -1)];
  if (at === -1 || next === undefined) return;
  event.preventDefault();
  next.focus();
}
