import { useRef } from "react";
import type { AgentOffer, SessionInfo } from "../../../client/api";
import { Icon } from "../../../ui/Icon";
import { DictateButton } from "./DictateButton";
import { withWords } from "./dictation.logic";
import { ModelButton } from "./ModelButton";
import { OptionsButton } from "./OptionsButton";
import type { ComposerState } from "./useComposer";

interface ComposerActionsProps {
  id: string;
  session: SessionInfo | null;
  composer: ComposerState;
  offer: AgentOffer | null;
  onOptionsChanged: () => void;
}

/** The buttons below the message. */
export function ComposerActions({ id, session, composer, offer, onOptionsChanged }: ComposerActionsProps) {
  const { busy, canSend, attach, send, cancel, isStopping } = composer;
  const isArriving = composer.uploads.length > 0;
  const picker = useRef<HTMLInputElement>(null);
  return (
    <div className="composer-actions">
      <button
        type="button"
        className="plain-button"
        aria-label="Add files"
        title="Add images or files. You can also paste or drop them."
        onClick={() => picker.current?.click()}
      >
        <Icon name="plus" size={18} />
      </button>
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        aria-label="Files to add"
        onChange={(event) => {
          attach([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
      <DictateButton
        onWords={(words) => composer.setDraft({ ...composer.draft, text: withWords(composer.draft.text, words) })}
      />
      {session !== null && <ModelButton session={session} offer={offer} busy={busy} onChanged={onOptionsChanged} />}
      <OptionsButton id={id} offer={offer} onChanged={onOptionsChanged} />
      <div className="composer-send">
        {busy && (
          <>
            <button
              type="button"
              className="small danger"
              title="Stop the agent and drop queued messages (Esc)"
              disabled={isStopping}
              onClick={cancel}
            >
              {isStopping ? "Stopping…" : "Stop"}
            </button>
            <button
              type="button"
              className="small"
              title="Interrupt the agent and send this now (Ctrl Enter)"
              disabled={!canSend}
              onClick={() => send("steer")}
            >
              Send now
            </button>
          </>
        )}
        <button
          className="small primary"
          title={
            isArriving
              ? "The files have not arrived yet"
              : busy
                ? "Send this when the agent is done (Enter)"
                : "Send (Enter)"
          }
          disabled={!canSend}
        >
          {busy ? "Queue" : "Send"}
        </button>
      </div>
    </div>
  );
}
