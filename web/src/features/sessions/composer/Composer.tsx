import { useState, type FormEvent } from "react";
import type { SessionEvent, SessionView } from "../../../client/api";
import { request } from "../../../client/http";
import { useToasts } from "../../../ui/Toasts";

const draftKey = (id: string) => `freehold.draft.${id}`;

export interface ComposerProps {
  id: string;
  session: SessionView | null;
  /** The events that are loaded, oldest first: the last ones always, older ones as the owner scrolls back. */
  events: readonly SessionEvent[];
  /** A prompt was taken: the transcript goes to its end. */
  onSent: () => void;
}

/** The place to say more. */
export function Composer({ id, session, onSent }: ComposerProps) {
  const [text, setText] = useState(() => sessionStorage.getItem(draftKey(id)) ?? "");
  const toasts = useToasts();
  const busy = session?.status === "working" || session?.status === "needs_you";

  function type(words: string) {
    setText(words);
    sessionStorage.setItem(draftKey(id), words);
  }

  async function post(verb: string, body: object): Promise<boolean> {
    try {
      await request(`/v1/sessions/${encodeURIComponent(id)}/${verb}`, { method: "POST", body });
      return true;
    } catch (error) {
      toasts.failed(error);
      return false;
    }
  }

  async function send(event?: FormEvent) {
    event?.preventDefault();
    const words = text.trim();
    if (words === "") return;
    onSent();
    if (await post("prompt", { text: words, key: crypto.randomUUID(), when: busy ? "queue" : "now" })) type("");
  }

  return (
    <form className="composer" onSubmit={(event) => void send(event)}>
      <textarea
        aria-label="Message"
        placeholder={busy ? "Say what comes next; it waits until this is done" : "What shall be done?"}
        rows={2}
        value={text}
        onChange={(event) => type(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            void send();
          } else if (event.key === "Escape" && busy) void post("cancel", {});
        }}
      />
      <button className="primary" disabled={text.trim() === ""}>
        {busy ? "Queue" : "Send"}
      </button>
    </form>
  );
}
