import { type KeyboardEvent, memo, useState } from "react";
import type { SessionInfo } from "../../../client/api";
import { formatAge, formatDateTime, secondsOf } from "../../../ui/format";
import { Icon } from "../../../ui/Icon";
import { ActionMenu, type MenuEntry } from "../../../ui/Menu";
import { Notice } from "../../../ui/Notice";
import { followLink, sessionPath } from "../../../ui/route";
import { useToasts } from "../../../ui/Toasts";
import { useNow } from "../../../ui/useNow";
import { visibleText } from "../../../ui/visibleText";
import { PermissionRulesDialog } from "../../approvals/PermissionRulesDialog";
import { useKillSwitch } from "../../kill-switch/KillSwitchProvider";
import { disableNotifications, enableNotifications, useNotificationState } from "../../notifications/browserPermission";
import { useSessionList } from "../../session-list/SessionListProvider";
import { sessionTitle, statusLabel, withOlder } from "../../session-list/sessionList.logic";
import { useSetup } from "../setup/SetupProvider";
import { NewSessionDialog } from "./NewSessionDialog";
import { SessionMenu } from "./SessionMenu";
import { StatusChip } from "./StatusChip";
import { shownSessions } from "./shownSessions";
import { useNewSession } from "./useNewSession";
import { useOlderSessions } from "./useOlderSessions";
import { useSessionSearch } from "./useSessionSearch";
import "./sidebar.css";

/** All sessions with their status, a search, and the button for a new one. */
export function Sidebar({ chosen }: { chosen: string | null }) {
  const [query, setQuery] = useState("");
  const [archived, setArchived] = useState(false);
  const [dialog, setDialog] = useState<"new" | "rules" | null>(null);
  const now = useNow();
  const sessionList = useSessionList();
  const search = useSessionSearch(query.trim(), archived);
  const older = useOlderSessions();
  const startSession = useNewSession();
  const { setup } = useSetup();
  const menu = useSidebarMenu({
    archived,
    onToggleArchive: () => setArchived(!archived),
    onShowRules: () => setDialog("rules"),
  });
  const { sessions, problem, reload } = search.active
    ? search
    : { sessions: sessionList.value && withOlder(sessionList.value, older.sessions), ...sessionList };
  const shown = sessions && shownSessions(sessions, chosen);

  return (
    <aside className="split-list sidebar" aria-label="Sessions">
      <div className="split-head">
        <h1>Sessions</h1>
        <ActionMenu label="Sessions menu" entries={menu} />
        <div className="sidebar-new">
          <button type="button" className="small primary" disabled={setup === null} onClick={() => void startSession()}>
            <Icon name="plus" size={16} /> New
          </button>
          <button
            type="button"
            className="small primary"
            aria-label="New session with another agent or model"
            title="Choose agent and model"
            onClick={() => setDialog("new")}
          >
            <Icon name="chevron" size={16} />
          </button>
        </div>
      </div>
      <input
        className="split-search"
        type="search"
        placeholder="Find in titles and messages"
        aria-label="Find a session"
        value={query}
        onChange={(event) => setQuery(event.target.value)}
      />
      {archived && (
        <p className="sidebar-note">
          Archive
          <button type="button" className="text-button" onClick={() => setArchived(false)}>
            Close the archive
          </button>
        </p>
      )}
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {shown?.length === 0 && <p className="empty split-note">{emptyText(query.trim(), archived)}</p>}
      <ul className="sidebar-sessions" onKeyDown={moveFocus}>
        {shown?.map((session) => (
          <SessionRow key={session.id} session={session} isCurrent={session.id === chosen} now={now} />
        ))}
      </ul>
      {!search.active && older.hasMore && (
        <button type="button" className="text-button" onClick={() => void older.load(sessions ?? [])}>
          Show older sessions
        </button>
      )}
      {dialog === "new" && <NewSessionDialog onClose={() => setDialog(null)} />}
      {dialog === "rules" && <PermissionRulesDialog onClose={() => setDialog(null)} />}
    </aside>
  );
}

function emptyText(query: string, archived: boolean): string {
  if (query !== "") return "No session matches.";
  return archived ? "The archive is empty." : "No sessions yet.";
}

interface SidebarMenuOptions {
  archived: boolean;
  onToggleArchive: () => void;
  onShowRules: () => void;
}

function useSidebarMenu({ archived, onToggleArchive, onShowRules }: SidebarMenuOptions): MenuEntry[] {
  const { stopped, stopAll, resume } = useKillSwitch();
  const notifications = useNotificationState();
  const toasts = useToasts();
  async function enable() {
    const state = await enableNotifications();
    toasts.done(
      state === "on"
        ? "You are notified when an agent needs you or is done"
        : "This browser does not allow Freehold to send notifications",
    );
  }
  return [
    { label: archived ? "Close the archive" : "Show the archive", icon: "folder", run: onToggleArchive },
    { label: "Permission rules…", icon: "key", run: onShowRules },
    ...(notifications === "on"
      ? [{ label: "Turn off notifications", icon: "talk" as const, run: disableNotifications }]
      : []),
    ...(notifications === "ask" || notifications === "off"
      ? [{ label: "Turn on notifications", icon: "talk" as const, run: () => void enable() }]
      : []),
    stopped
      ? { label: "Let agents work again", icon: "redo", separated: true, run: () => void resume() }
      : { label: "Stop all agents now", icon: "warning", danger: true, separated: true, run: () => void stopAll("") },
  ];
}

interface SessionRowProps {
  session: SessionInfo;
  isCurrent: boolean;
  now: number;
}

/** A step from one session to another draws two of perhaps hundreds of rows again. */
const SessionRow = memo(function SessionRow({ session, isCurrent, now }: SessionRowProps) {
  const at = secondsOf(session.updated);
  const unread = session.unread && !isCurrent;
  const { agents } = useSetup();
  const agent = agents?.find((one) => one.name === session.agent);
  const to = sessionPath(session.id);
  return (
    <li data-status={session.status} data-unread={unread || undefined} data-current={isCurrent || undefined}>
      <a href={to} aria-current={isCurrent ? "true" : undefined} onClick={(event) => followLink(event, to)}>
        <span className="sidebar-title" title={visibleText(session.title)}>
          {sessionTitle(session)}
        </span>
        <span className="sidebar-facts">
          {/* The first formatter of a page costs a slow phone 80 ms, so it is made for a pointer that is there. */}
          <time
            dateTime={session.updated}
            onPointerEnter={(event) => {
              event.currentTarget.title = formatDateTime(at);
            }}
          >
            {formatAge(at, now)}
          </time>{" "}
          · {agent?.title ?? session.agent}
        </span>
        <StatusChip session={session} label={statusLabel({ ...session, unread })} />
        {unread && (
          <span className="sidebar-unread">
            <span className="visually-hidden">unread</span>
          </span>
        )}
      </a>
      <SessionMenu session={session} className="plain-button sidebar-menu" />
    </li>
  );
});

/** Arrow keys move from session to session. */
function moveFocus(event: KeyboardEvent<HTMLUListElement>) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>("li > a")];
  const index = links.indexOf(document.activeElement as HTMLElement);
  const next = links[index + (event.key === "ArrowDown" ? 1 : -1)];
  if (index === -1 || next === undefined) return;
  event.preventDefault();
  next.focus();
}
