import type { AgentOffer, SessionInfo } from "../../client/api";
import { Icon } from "../../ui/Icon";
import { go, sessionPath } from "../../ui/route";
import { useSwipe } from "../../ui/swipe";
import { visibleText } from "../../ui/visibleText";
import { useSessionList } from "../session-list/SessionListProvider";
import { neighbourOf, sessionTitle, statusLabel } from "../session-list/sessionList.logic";
import { useWorkbench } from "../workbench/workbenchContext";
import { modelLabel } from "./composer/modelChoice.logic";
import { useSetup } from "./setup/SetupProvider";
import { SessionMenu } from "./sidebar/SessionMenu";
import { StatusChip } from "./sidebar/StatusChip";
import { shownSessions } from "./sidebar/shownSessions";

interface SessionHeaderProps {
  session: SessionInfo | null;
  offer: AgentOffer | null;
  onClose: () => void;
}

/** The title of the open session, its agent, its model, its status and its menu. */
export function SessionHeader({ session, offer, onClose }: SessionHeaderProps) {
  const { agents, models } = useSetup();
  const workbench = useWorkbench();
  const agent = agents?.find((one) => one.name === session?.agent);
  const { value: sessions } = useSessionList();
  const swipe = useSwipe((step) => {
    const next = neighbourOf(shownSessions(sessions ?? [], session?.id), session?.id ?? null, step);
    if (next !== null) go(sessionPath(next.id));
  });
  const model = session === null ? null : modelLabel(session, agent, models?.models ?? [], offer);
  return (
    <header className="split-detail-head sessions-header" {...swipe}>
      <button type="button" className="plain-button split-back" onClick={onClose} aria-label="Back to the sessions">
        <Icon name="back" />
      </button>
      <h2 title={sessionTitle(session)}>{session === null ? "" : sessionTitle(session)}</h2>
      {session !== null && (
        <>
          <span className="quiet sessions-agent">
            {agent?.title ?? session.agent}
            {model && ` · ${visibleText(model)}`}
          </span>
          {session.folder !== "" && (
            <span className="chip sessions-folder" title={`The agent works in ${visibleText(session.folder)}`}>
              {visibleText(session.folder)}
            </span>
          )}
          {session.asks === false && (
            <span
              className="chip"
              data-tone="amber"
              title="This agent does not ask before it acts. Isolation and network rules still apply."
            >
              acts without asking
            </span>
          )}
          <StatusChip session={session} label={statusLabel({ ...session, unread: false })} />
          {workbench?.toggle && (
            <button
              type="button"
              className="plain-button sessions-beside"
              aria-label="Changes, preview, files, git, terminal and plan"
              title="Changes, preview, files, git, terminal and plan"
              aria-expanded={workbench.isOpen}
              onClick={workbench.toggle}
            >
              <Icon name="full" />
            </button>
          )}
          <SessionMenu session={session} />
        </>
      )}
    </header>
  );
}
