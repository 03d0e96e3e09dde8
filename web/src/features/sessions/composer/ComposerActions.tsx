import { useRef } from "react";
import type { AgentOffer } from "../../../client/api";
import { Icon } from "../../../ui/Icon";
import { OptionsButton } from "./OptionsButton";
import type { ComposerState } from "./useComposer";

interface ComposerActionsProps {
  id: string;
  composer: ComposerState;
  offer: AgentOffer | null;
  onOptionsChanged: () => void;
}

/** The buttons below the message. */
export function ComposerActions({ id, composer, offer, onOptionsChanged }: ComposerActionsProps) {
  const { busy, canSend, images, send, cancel } = composer;
  const picker = useRef<HTMLInputElement>(null);
  return (
    <div className="composer-actions">
      <button
        type="button"
        className="plain-button"
        aria-label="Add images"
        title="Add images. You can also paste or drop them."
        onClick={() => picker.current?.click()}
      >
        <Icon name="plus" size={18} />
      </button>
      <input
        ref={picker}
        type="file"
        accept="image/*"
        multiple
        hidden
        aria-label="Images"
        onChange={(event) => {
          void images.add([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
      <OptionsButton id={id} offer={offer} onChanged={onOptionsChanged} />
      <span className="composer-space" />
      {busy && (
        <>
          <button
            type="button"
            className="small danger"
            title="Stop the agent and drop queued messages (Esc)"
            onClick={cancel}
          >
            Stop
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
        title={busy ? "Send this when the agent is done (Enter)" : "Send (Enter)"}
        disabled={!canSend}
      >
        {busy ? "Queue" : "Send"}
      </button>
    </div>
  );
}
