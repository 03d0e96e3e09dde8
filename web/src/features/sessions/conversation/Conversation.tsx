import { useState } from "react";
import type { SessionInfo } from "../../../client/api";
import { ErrorBoundary } from "../../../ui/ErrorBoundary";
import { lazyComponent } from "../../../ui/lazyComponent";
import { ApprovalDock } from "../../approvals/ApprovalDock";
import { sessionTitle } from "../../session-list/sessionList.logic";
import { Composer } from "../composer/Composer";
import { SessionHeader } from "../SessionHeader";
import "./conversation.css";
import { useSessionEvents } from "./useSessionEvents";

// The Markdown parser is most of the code of this page. The rest of the page does not wait for it.
const Transcript = lazyComponent(async () => ({ default: (await import("./Transcript")).Transcript }));
Transcript.load();

interface ConversationProps {
  id: string;
  session: SessionInfo | null;
  onClose: () => void;
}

/** One session: its transcript, its open permission requests and the composer. */
export function Conversation({ id, session, onClose }: ConversationProps) {
  const loaded = useSessionEvents(id);
  const [promptsSent, setPromptsSent] = useState(0);
  return (
    <section className="split-detail conversation" aria-label={session === null ? "Session" : sessionTitle(session)}>
      <SessionHeader session={session} onClose={onClose} />
      <div className="conversation-place">
        <ErrorBoundary name="The transcript" content={loaded.events}>
          <Transcript
            session={id}
            loaded={loaded}
            workingAsOf={session?.status === "working" ? session.seq : null}
            waiting={session?.status === "queued" ? (session.waiting?.message ?? null) : null}
            promptsSent={promptsSent}
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
        />
      </ErrorBoundary>
    </section>
  );
}
