import { useEffect, useState } from "react";
import type { SessionView } from "../../client/api";
import { request } from "../../client/http";
import { useAnswer } from "../../ui/answers";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { useTopic } from "../shell/live";
import { go, useRoute } from "../shell/route";
import { Conversation } from "./conversation/Conversation";
import { FirstProvider, useFirst } from "./first/first";
import { isReady } from "./first/first.logic";
import { FirstSteps } from "./first/FirstSteps";
import { useRoster } from "./roster";
import { useNewSession } from "./sidebar/newSession";
import { Sidebar } from "./sidebar/Sidebar";
import "./sessions.css";
import "./sidebar/sidebar.css";

export default function SessionsPage() {
  return (
    <FirstProvider>
      <Sessions />
    </FirstProvider>
  );
}

function Sessions() {
  const { query } = useRoute();
  const chosen = query.get("id");
  const { steps } = useFirst();
  return (
    <div className="files" data-open={chosen !== null || undefined} data-steps={(steps !== null && !isReady(steps)) || undefined}>
      <Sidebar chosen={chosen} />
      {chosen === null ? <NoSession /> : <OpenSession key={chosen} id={chosen} />}
    </div>
  );
}

/** One of the roster, or, archived or old, one that is asked for by itself. */
function OpenSession({ id }: { id: string }) {
  const roster = useRoster();
  const listed = roster.rows?.find((one) => one.id === id) ?? null;
  const alone = useAnswer<SessionView>(roster.rows === null || listed !== null ? null : `/v1/sessions/${encodeURIComponent(id)}`);
  useTopic("sessions", {
    event: (data) => {
      if ((data as SessionView).id === id) alone.reload();
    },
  });
  const session = listed ?? alone.value;
  useSeen(session);
  if (alone.problem !== null && session === null)
    return (
      <div className="file-none">
        <Notice problem={alone.problem} action={{ label: "Back to the sessions", run: () => go("/sessions") }} />
      </div>
    );
  return <Conversation id={id} session={session} onClose={() => go("/sessions")} />;
}

/** What is before the owner's eyes is read. */
function useSeen(session: SessionView | null) {
  const [hidden, setHidden] = useState(document.hidden);
  useEffect(() => {
    const changed = () => setHidden(document.hidden);
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  }, []);
  const { id, seq, unread } = session ?? { id: "", seq: 0, unread: false };
  useEffect(() => {
    // That it was read is told again with the next event: a failure here costs nothing.
    if (unread && !hidden) request(`/v1/sessions/${encodeURIComponent(id)}/seen`, { method: "POST", body: { seq } }).catch(() => undefined);
  }, [id, seq, unread, hidden]);
}

function NoSession() {
  const { steps } = useFirst();
  const open = useNewSession();
  return (
    <div className="file-none">
      {steps !== null && !isReady(steps) ? (
        <FirstSteps steps={steps} />
      ) : (
        <div className="no-session">
          <Icon name="talk" size={40} />
          <p>Choose a session, or start one. Every file an agent changes can be taken back.</p>
          <button className="primary" disabled={steps === null} onClick={() => void open()}>
            <Icon name="plus" size={18} /> New session
          </button>
        </div>
      )}
    </div>
  );
}
