import { Icon } from "../../../ui/Icon";
import { sessionPath, useGo, useRoute } from "../../../ui/route";
import { useListedSession, useSessionList } from "../../session-list/SessionListProvider";
import { sessionTitle } from "../../session-list/sessionList.logic";
import { shownSessions } from "../sidebar/shownSessions";
import { useMarkSeen } from "../useMarkSeen";
import { ConversationBody } from "./ConversationBody";
import { useSessionEvents } from "./useSessionEvents";

/** A second session beside the `current` one. The address of the pane names it. */
export default function OtherSession({ current }: { current: string }) {
  const { query } = useRoute();
  const go = useGo();
  const { value: sessions } = useSessionList();
  const id = query.get("id");
  const others = shownSessions(sessions ?? [], id).filter((one) => one.id !== current);
  if (id !== null && others.some((one) => one.id === id))
    return (
      <div className="conversation-other">
        <SecondConversation key={id} id={id} />
      </div>
    );
  return (
    <div className="conversation-other-none">
      <Icon name="talk" size={32} />
      <p className="quiet">
        {others.length === 0
          ? "There is no other session. Start one with New."
          : "Choose the session to show beside this one."}
      </p>
      {others.length > 0 && (
        <select aria-label="Session beside" value="" onChange={(event) => go(sessionPath(event.target.value))}>
          <option value="">Choose a session</option>
          {others.map((one) => (
            <option key={one.id} value={one.id}>
              {sessionTitle(one)}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}

function SecondConversation({ id }: { id: string }) {
  const session = useListedSession(id);
  const go = useGo();
  const loaded = useSessionEvents(id);
  useMarkSeen(session);
  return <ConversationBody id={id} session={session} loaded={loaded} onClose={() => go("/sessions")} />;
}
