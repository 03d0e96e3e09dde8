import { type DragEvent, type FormEvent, useState } from "react";
import type { AgentOffer, SessionEvent, SessionInfo } from "../../../client/api";
import type { ResourceHandle } from "../../../data/resource";
import { ArchivedNotice } from "./ArchivedNotice";
import { Attachments } from "./Attachments";
import { BudgetNotice } from "./BudgetNotice";
import { ComposerActions } from "./ComposerActions";
import { KeyHints } from "./KeyHints";
import { MessageField } from "./MessageField";
import { OrchestratorNotice } from "./OrchestratorNotice";
import { SharedFiles } from "./SharedFiles";
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
  offer: ResourceHandle<AgentOffer>;
}

/** Where the owner writes to the agent of a session. */
export function Composer({ id, session, events, onSent, stop, offer: offered }: ComposerProps) {
  const composer = useComposer(id, session, events, onSent, stop);
  const { value: offer, reload: reloadOffer } = offered;
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
      <SharedFiles files={composer.shared} onAnswer={composer.answerShared} />
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
