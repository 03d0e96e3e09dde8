import { type DragEvent, type FormEvent, useEffect, useState } from "react";
import type { AgentOffer, SessionEvent, SessionInfo } from "../../../client/api";
import { useResource } from "../../../data/resource";
import { ArchivedNotice } from "./ArchivedNotice";
import { Attachments } from "./Attachments";
import { BudgetNotice } from "./BudgetNotice";
import { ComposerActions } from "./ComposerActions";
import { KeyHints } from "./KeyHints";
import { MessageField } from "./MessageField";
import { OrchestratorNotice } from "./OrchestratorNotice";
import { UnsentPrompts } from "./UnsentPrompts";
import { type StopState, useComposer } from "./useComposer";
import { useEscapeKey } from "./useEscapeKey";
import "./composer.css";

interface ComposerProps {
  id: string;
  session: SessionInfo | null;
  /** The events that are loaded, oldest first. The newest ones are always loaded. */
  events: readonly SessionEvent[];
  /** A prompt was sent: the transcript scrolls to its end. */
  onSent: () => void;
  stop: StopState;
}

/** Where the owner writes to the agent of a session. */
export function Composer({ id, session, events, onSent, stop }: ComposerProps) {
  const composer = useComposer(id, session, events, onSent, stop);
  const { value: offer, reload: reloadOffer } = useOffer(id, events);
  const [dropping, setDropping] = useState(false);
  const { busy, attach, send, cancel } = composer;
  useEscapeKey(busy, cancel);

  function drop(event: DragEvent) {
    setDropping(false);
    if (event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    attach([...event.dataTransfer.files]);
  }

  if (session?.archived) return <ArchivedNotice session={session} />;
  return (
    <form
      className="composer"
      data-dropping={dropping || undefined}
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        send(busy ? "queue" : "now");
      }}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        setDropping(true);
      }}
      onDragLeave={() => setDropping(false)}
      onDrop={drop}
    >
      <BudgetNotice />
      <OrchestratorNotice />
      <UnsentPrompts prompts={composer.unsent} onTakeBack={composer.takeBack} />
      <div className="composer-box">
        <MessageField composer={composer} commands={offer?.commands ?? []} isNew={session?.seq === 0}>
          <Attachments composer={composer} />
        </MessageField>
        <ComposerActions id={id} session={session} composer={composer} offer={offer} onOptionsChanged={reloadOffer} />
      </div>
      {busy && <KeyHints />}
    </form>
  );
}

/** The options and commands of the agent. An event tells when they changed. */
function useOffer(id: string, events: readonly SessionEvent[]) {
  const offer = useResource<AgentOffer>(`/v1/sessions/${encodeURIComponent(id)}/offer`);
  const changedAt = events.findLast((event) => event.kind === "options" || event.kind === "commands")?.seq ?? 0;
  const { reload } = offer;
  useEffect(() => {
    if (changedAt > 0) reload();
  }, [changedAt, reload]);
  return offer;
}
