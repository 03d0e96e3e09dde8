import { useCallback } from "react";
import type { OpenSession, SessionView } from "../../../client/api";
import { problemOf, request } from "../../../client/http";
import { useToasts } from "../../../ui/Toasts";
import { go } from "../../shell/route";
import { useFirst } from "../first/first";
import { isMissing, mayBegin } from "../first/first.logic";
import { useRoster } from "../roster";

/** Opens a session and goes there, or to the first steps when they are not done; says whether it went anywhere. */
export function useNewSession(): (how?: OpenSession) => Promise<boolean> {
  const toasts = useToasts();
  const { take } = useRoster();
  const { steps, show } = useFirst();
  return useCallback(
    async (how: OpenSession = {}) => {
      if (steps !== null && !mayBegin(steps, how.agent ?? null)) {
        show();
        return true;
      }
      const agent = how.agent ?? steps?.agent ?? null;
      try {
        const made = await request<SessionView>("/v1/sessions", { method: "POST", body: agent === null ? how : { ...how, agent } });
        take(made);
        // Where no field takes the focus, as on touch, the button would be pressed again by the next Space.
        document.getElementById("page")?.focus();
        go(`/sessions?id=${encodeURIComponent(made.id)}`);
        return true;
      } catch (error) {
        if (isMissing(problemOf(error).code, steps)) {
          show();
          return true;
        }
        toasts.failed(error);
        return false;
      }
    },
    [take, toasts, steps, show],
  );
}
