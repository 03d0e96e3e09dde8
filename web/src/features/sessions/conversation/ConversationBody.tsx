import { useMemo, useState } from "react";
import type { SessionInfo } from "../../../client/api";
import { ErrorBoundary } from "../../../ui/ErrorBoundary";
import { lazyComponent } from "../../../ui/lazyComponent";
import { ApprovalDock } from "../../approvals/ApprovalDock";
import { isBusy, sessionTitle } from "../../session-list/sessionList.logic";
import { Composer } from "../composer/Composer";
import type { StopState } from "../composer/useComposer";
import { SessionHeader } from "../SessionHeader";
import { useOffer } from "./useOffer";
import type { useSessionEvents } from "./useSessionEvents";
import "./conversation.css";

// A list of sessions is there before the code of a conversation and of its Markdown is loaded in advance.
const LOAD_AHEAD = 3_000;
const Transcript = lazyComponent(async () => ({ default: (await import("./Transcript")).Transcript }));
if (new URLSearchParams(location.search).has("id")) Transcript.load();
else setTimeout(loadAhead, LOAD_AHEAD);

function loadAhead() {
  Transcript.load();
  void import("../../markdown/FormattedText").catch(() => undefined);
}

interface ConversationBodyProps {
  id: string;
  session: SessionInfo | null;
  onClose: () => void;
  loaded: ReturnType<typeof useSessionEvents>;
}

/** One session without a pane. */
export function ConversationBody({ id, session, loaded, onClose }: ConversationBodyProps) {
  const [promptsSent, setPromptsSent] = useState(0);
  const stop = useStop(session);
  const offer = useOffer(id, loaded.events);
  return (
    <section className="split-detail conversation" aria-label={session === null ? "Session" : sessionTitle(session)}>
      <SessionHeader session={session} offer={offer.value} onClose={onClose} />
      <div className="conversation-place">
        <ErrorBoundary name="The transcript" content={loaded.events}>
          <Transcript
            session={id}
            loaded={loaded}
            workingAsOf={session?.status === "working" ? session.seq : null}
            waiting={session?.status === "queued" ? (session.waiting?.message ?? null) : null}
            promptsSent={promptsSent}
            isStopping={stop.isStopping}
          />
        </ErrorBoundary>
      </div>
      <ErrorBoundary name="The list of requests">
        <ApprovalDock session={id} />
      </ErrorBoundary>
      <ErrorBoundary name="The field for your message">
        <Composer
          id={id}
          session={session}
          events={loaded.events}
          onSent={() => setPromptsSent((count) => count + 1)}
          stop={stop}
          offer={offer}
        />
      </ErrorBoundary>
    </section>
  );
}

/** Whether the owner has stopped the agent. It is shown at once; the agent may need some seconds to end. */
function useStop(session: SessionInfo | null): StopState {
  const [isAsked, setAsked] = useState(false);
  const busy = isBusy(session);
  if (isAsked && !busy) setAsked(false);
  const isStopping = isAsked && busy;
  return useMemo(() => ({ isStopping, onStopping: setAsked }), [isStopping]);
}
