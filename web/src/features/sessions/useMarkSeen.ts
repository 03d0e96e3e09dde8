import { useEffect, useState } from "react";
import type { SessionInfo } from "../../client/api";
import { request } from "../../client/http";

/** Marks a session as read while it is on the screen. */
export function useMarkSeen(session: SessionInfo | null): void {
  const [hidden, setHidden] = useState(document.hidden);
  useEffect(() => {
    const onVisibilityChange = () => setHidden(document.hidden);
    document.addEventListener("visibilitychange", onVisibilityChange);
    return () => document.removeEventListener("visibilitychange", onVisibilityChange);
  }, []);
  const { id, seq, unread } = session ?? { id: "", seq: 0, unread: false };
  useEffect(() => {
    if (!unread || hidden) return;
    // A failure does no harm: the next event marks it again.
    request(`/v1/sessions/${encodeURIComponent(id)}/seen`, { method: "POST", body: { seq } }).catch(() => undefined);
  }, [id, seq, unread, hidden]);
}
