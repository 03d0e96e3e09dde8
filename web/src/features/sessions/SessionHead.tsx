import type { SessionView } from "../../client/api";
import { request } from "../../client/http";
import { Icon } from "../../ui/Icon";
import { useToasts } from "../../ui/Toasts";

/** The name of the open session and what can be done with it. */
export function SessionHead({ id, session, onClose }: { id: string; session: SessionView | null; onClose: () => void }) {
  const toasts = useToasts();
  const busy = session?.status === "working" || session?.status === "needs_you";
  return (
    <header className="file-head">
      <button className="plain-button back" onClick={onClose} aria-label="Back to the sessions">
        <Icon name="back" />
      </button>
      <h2>{session?.title || "New session"}</h2>
      {busy && (
        <button
          className="small danger"
          onClick={() => void request(`/v1/sessions/${encodeURIComponent(id)}/cancel`, { method: "POST", body: {} }).catch(toasts.failed)}
        >
          Stop
        </button>
      )}
    </header>
  );
}
