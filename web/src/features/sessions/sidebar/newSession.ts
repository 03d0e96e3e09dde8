import { useCallback } from "react";
import type { OpenSession, SessionView } from "../../../client/api";
import { request } from "../../../client/http";
import { useToasts } from "../../../ui/Toasts";
import { go } from "../../shell/route";
import { useRoster } from "../roster";

/** Opens a session and goes there; says whether it could. */
export function useNewSession(): (how?: OpenSession) => Promise<boolean> {
  const toasts = useToasts();
  const { take } = useRoster();
  return useCallback(
    async (how: OpenSession = {}) => {
      try {
        const made = await request<SessionView>("/v1/sessions", { method: "POST", body: how });
        take(made);
        go(`/sessions?id=${encodeURIComponent(made.id)}`);
        return true;
      } catch (error) {
        toasts.failed(error);
        return false;
      }
    },
    [take, toasts],
  );
}
