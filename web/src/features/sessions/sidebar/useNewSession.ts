import { useCallback } from "react";
import type { OpenSession, SessionInfo } from "../../../client/api";
import { problemOf, request } from "../../../client/http";
import { go, sessionPath } from "../../../ui/route";
import { useToasts } from "../../../ui/Toasts";
import { useSessionList } from "../../session-list/SessionListProvider";
import { isUnused } from "../../session-list/sessionList.logic";
import { readDraft, writeDraft } from "../composer/draft";
import { useSetup } from "../setup/SetupProvider";
import { canStart, isSetupProblem } from "../setup/setup.logic";

/**
 * Starts a session and opens it, or one that was started and not used. Shows the setup steps when they are not done.
 * The message begins with the text. False when it failed.
 */
export function useNewSession(): (options?: OpenSession, text?: string) => Promise<boolean> {
  const toasts = useToasts();
  const { value: sessions, receive } = useSessionList();
  const { setup, agents, showSteps } = useSetup();
  return useCallback(
    async (options: OpenSession = {}, text = "") => {
      if (setup !== null && !canStart(setup, options.agent ?? null)) {
        showSteps();
        return true;
      }
      const agent = options.agent ?? setup?.agent ?? null;
      const wanted = agent ?? agents?.find((one) => one.default)?.name;
      const unused = sessions?.find(
        (one) =>
          isUnused(one) && one.agent === wanted && one.model === (options.model ?? null) && !readDraft(one.id).text,
      );
      if (unused !== undefined && !options.title) {
        document.getElementById("page")?.focus();
        if (text !== "") writeDraft(unused.id, { text, picked: [] });
        go(sessionPath(unused.id));
        return true;
      }
      try {
        const body = agent === null ? options : { ...options, agent };
        const session = await request<SessionInfo>("/v1/sessions", { method: "POST", body });
        receive(session);
        if (text !== "") writeDraft(session.id, { text, picked: [] });
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
    [sessions, receive, toasts, setup, agents, showSteps],
  );
}
