import type { SessionView } from "../../client/api";
import { Icon } from "../../ui/Icon";
import { unhidden } from "../../ui/unhidden";
import { standing } from "./roster.logic";
import { SessionMenu } from "./sidebar/SessionMenu";

/** The name of the open session, how it stands and what can be done with it. */
export function SessionHead({ session, onClose }: { session: SessionView | null; onClose: () => void }) {
  const stands = session === null ? null : standing({ ...session, unread: false });
  return (
    <header className="file-head session-head">
      <button className="plain-button back" onClick={onClose} aria-label="Back to the sessions">
        <Icon name="back" />
      </button>
      <h2 title={unhidden(session?.title ?? "")}>{session === null ? "" : unhidden(session.title) || "New session"}</h2>
      {session !== null && (
        <>
          <span className="quiet session-agent">
            {session.agent}
            {session.model && ` · ${session.model}`}
          </span>
          {stands && (
            <span className="chip" data-tone={stands.tone}>
              {session.status === "working" && <span className="spinner" aria-hidden="true" />}
              {stands.words}
            </span>
          )}
          <SessionMenu session={session} />
        </>
      )}
    </header>
  );
}
