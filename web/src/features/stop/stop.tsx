import { createContext, useCallback, useContext, type ReactNode } from "react";
import type { StopState } from "../../client/api";
import { request } from "../../client/http";
import { useAnswer, type Answer } from "../../ui/answers";
import { useToasts } from "../../ui/Toasts";
import { useTopic } from "../shell/live";

const ABOUT_IT = new Set(["models.stopped", "models.resumed"]);

/** Whether everything is stopped, by whoever's hand, and both ways to change that. */
interface Stop extends Answer<StopState> {
  stop: (why: string) => Promise<void>;
  lift: () => Promise<void>;
}

const Context = createContext<Stop | null>(null);

export function useStop(): Stop {
  const stop = useContext(Context);
  if (stop === null) throw new Error("no StopProvider above");
  return stop;
}

export function StopProvider({ children }: { children: ReactNode }) {
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
      subscribed: reload,
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
  const stop = useCallback((why: string) => ask("/v1/stop", { why }, "Everything is stopped"), [ask]);
  const lift = useCallback(() => ask("/v1/stop/lift", undefined, "Agents and models may work again"), [ask]);
  return <Context.Provider value={{ ...answer, stop, lift }}>{children}</Context.Provider>;
}

/** On every page while everything is stopped: why, and the way out. */
export function StopBar() {
  const { value: state, lift } = useStop();
  if (state === null || !state.stopped) return null;
  return (
    <div className="bar" data-tone="alarm" role="status">
      <p>
        <strong>Everything is stopped.</strong> No agent works and no model is asked{state.why ? `: ${state.why}` : "."}
      </p>
      <button className="small" onClick={() => void lift()}>
        Let agents work again
      </button>
    </div>
  );
}
