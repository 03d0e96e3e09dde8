import { useCallback } from "react";
import type { StopState } from "../../client/api";
import { request } from "../../client/http";
import { useAnswer, type Answer } from "../../ui/answers";
import { useToasts } from "../../ui/Toasts";
import { useTopic } from "../shell/live";

const ABOUT_IT = new Set(["models.stopped", "models.resumed"]);

export interface Stop extends Answer<StopState> {
  stop: (why: string) => Promise<void>;
  lift: () => Promise<void>;
}

/** Whether everything is stopped, by whoever's hand, and both ways to change that. */
export function useStop(): Stop {
  const answer = useAnswer<StopState>("/v1/stop");
  const toasts = useToasts();
  const { reload, put } = answer;
  useTopic(
    "timeline",
    {
      event: (data) => {
        if (ABOUT_IT.has(String((data as { kind?: unknown }).kind))) reload();
      },
      resync: reload,
    },
    { durable: true },
  );
  const ask = useCallback(
    async (path: string, body: object | undefined, said: string) => {
      try {
        put(await request<StopState>(path, body === undefined ? { method: "POST" } : { method: "POST", body }));
        toasts.done(said);
      } catch (error) {
        toasts.failed(error);
        reload();
      }
    },
    [put, reload, toasts],
  );
  return {
    ...answer,
    stop: useCallback((why) => ask("/v1/stop", { why }, "Everything is stopped"), [ask]),
    lift: useCallback(() => ask("/v1/stop/lift", undefined, "Agents and models may work again"), [ask]),
  };
}
