import { useEffect } from "react";
import type { SessionInfo } from "../../client/api";
import { useResource } from "../../data/resource";
import { ErrorBoundary } from "../../ui/ErrorBoundary";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { go, useRoute } from "../../ui/route";
import { useSessionList } from "../session-list/SessionListProvider";
import { holdSharedFiles } from "./composer/sharedFiles";
import { Conversation } from "./conversation/Conversation";
import { SetupProvider, useSetup } from "./setup/SetupProvider";
import { SetupSteps } from "./setup/SetupSteps";
import { isSetUp } from "./setup/setup.logic";
import { hasSharedFiles, sharedText } from "./sharedText.logic";
import { Sidebar } from "./sidebar/Sidebar";
import { useNewSession } from "./sidebar/useNewSession";
import { useMarkSeen } from "./useMarkSeen";
import "./sessions.css";

export default function SessionsPage() {
  return (
    <SetupProvider>
      <Sessions />
    </SetupProvider>
  );
}

function Sessions() {
  const { query } = useRoute();
  const chosen = query.get("id");
  const { setup } = useSetup();
  useStartAsked(query.get("new") !== null, sharedText(query), hasSharedFiles(query));
  const needsSetup = setup !== null && !isSetUp(setup);
  return (
    <div className="split sessions" data-open={chosen !== null || undefined} data-setup={needsSetup || undefined}>
      <ErrorBoundary name="The list of sessions">
        <Sidebar chosen={chosen} />
      </ErrorBoundary>
      <h1 className="visually-hidden split-title">Sessions</h1>
      {chosen === null ? <NoSession /> : <OpenSession id={chosen} />}
    </div>
  );
}

/** Starts a session when the address asks for one, as the command palette does, or with what another app shared. */
function useStartAsked(isNewAsked: boolean, shared: string | null, hasFiles: boolean) {
  const isAsked = isNewAsked || shared !== null;
  const { setup } = useSetup();
  const startSession = useNewSession();
  useEffect(() => {
    // What was shared waits in the address until there is an agent and a model.
    if (!isAsked || setup === null || (shared !== null && !isSetUp(setup))) return;
    go("/sessions", { replace: true });
    const held = hasFiles ? holdSharedFiles().catch(() => undefined) : Promise.resolve();
    void held.then(() => startSession({}, shared ?? ""));
  }, [isAsked, shared, hasFiles, setup, startSession]);
}

/** A session of the list, or one that is fetched by itself because it is archived or old. */
function OpenSession({ id }: { id: string }) {
  const { value: listed } = useSessionList();
  const fromList = listed?.find((one) => one.id === id) ?? null;
  const isFetched = listed !== null && fromList === null;
  const fetched = useResource<SessionInfo>(isFetched ? `/v1/sessions/${encodeURIComponent(id)}` : null, {
    topic: "sessions",
    concerns: (event) => (event as SessionInfo).id === id,
  });
  const session = fromList ?? fetched.value;
  useMarkSeen(session);
  if (fetched.problem !== null && session === null)
    return (
      <div className="split-empty">
        <Notice problem={fetched.problem} action={{ label: "Back to the sessions", run: () => go("/sessions") }} />
      </div>
    );
  return <Conversation id={id} session={session} onClose={() => go("/sessions")} />;
}

function NoSession() {
  const { setup } = useSetup();
  const startSession = useNewSession();
  return (
    <div className="split-empty">
      {setup !== null && !isSetUp(setup) ? (
        <SetupSteps setup={setup} />
      ) : (
        <div className="sessions-none">
          <Icon name="talk" size={40} />
          <p>Choose a session, or start a new one. You can undo every file change that an agent makes.</p>
          <button type="button" className="primary" disabled={setup === null} onClick={() => void startSession()}>
            <Icon name="plus" size={18} /> Start a session
          </button>
        </div>
      )}
    </div>
  );
}
