import type { SessionInfo } from "../../client/api";
import { Icon } from "../../ui/Icon";
import { sessionTitle, statusLabel } from "../session-list/sessionList.logic";
import { SessionMenu } from "./sidebar/SessionMenu";
import { StatusChip } from "./sidebar/StatusChip";

/** The title of the open session, its agent, its status and its menu. */
export function SessionHeader({ session, onClose }: { session: SessionInfo | null; onClose: () => void }) {
  return (
    <header className="split-detail-head sessions-header">
      <button type="button" className="plain-button split-back" onClick={onClose} aria-label="Back to the sessions">
        <Icon name="back" />
      </button>
      <h2 title={sessionTitle(session)}>{session === null ? "" : sessionTitle(session)}</h2>
      {session !== null && (
        <>
          <span className="quiet sessions-agent">
            {session.agent}
            {session.model && ` · ${session.model}`}
          </span>
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
          <SessionMenu session={session} />
        </>
      )}
    </header>
  );
}
