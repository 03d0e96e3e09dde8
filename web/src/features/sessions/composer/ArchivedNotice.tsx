import type { SessionInfo } from "../../../client/api";
import { request } from "../../../client/http";
import { useToasts } from "../../../ui/Toasts";
import { useSessionList } from "../../session-list/SessionListProvider";

/** In the place of the composer of an archived session. */
export function ArchivedNotice({ session }: { session: SessionInfo }) {
  const { receive } = useSessionList();
  const toasts = useToasts();
  const restore = () =>
    request<SessionInfo>(`/v1/sessions/${encodeURIComponent(session.id)}`, {
      method: "PATCH",
      body: { archived: false },
    })
      .then(receive)
      .catch(toasts.failed);
  return (
    <div className="composer">
      <div className="composer-note">
        <p>This session is archived.</p>
        <button type="button" className="small" onClick={() => void restore()}>
          Move out of the archive
        </button>
      </div>
    </div>
  );
}
