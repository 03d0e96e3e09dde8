import { useCallback } from "react";
import type { OpenSession, SessionInfo } from "../../../client/api";
import { problemOf, request } from "../../../client/http";
import { go, sessionPath } from "../../../ui/route";
import { useToasts } from "../../../ui/Toasts";
import { useSessionList } from "../../session-list/SessionListProvider";
import { useSetup } from "../setup/SetupProvider";
import { canStart, isSetupProblem } from "../setup/setup.logic";

/** Starts a session and opens it, or shows the setup steps when they are not done. False when it failed. */
export function useNewSession(): (options?: OpenSession) => Promise<boolean> {
  const toasts = useToasts();
  const { receive } = useSessionList();
  const { setup, showSteps } = useSetup();
  return useCallback(
    async (options: OpenSession = {}) => {
      if (setup !== null && !canStart(setup, options.agent ?? null)) {
        showSteps();
        return true;
      }
      const agent = options.agent ?? setup?.agent ?? null;
      try {
        const body = agent === null ? options : { ...options, agent };
        const session = await request<SessionInfo>("/v1/sessions", { method: "POST", body });
        receive(session);
        // On touch screens no field takes the focus. Without this, Space would press the button again.
        document.getElementById("page")?.focus();
        go(sessionPath(session.id));
        return true;
      } catch (error) {
        if (isSetupProblem(problemOf(error).code, setup)) {
          showSteps();
          return true;
        }
        toasts.failed(error);
        return false;
      }
    },
    [receive, toasts, setup, showSteps],
  );
}
