import { createContext, useCallback, useContext, useMemo, type ReactNode } from "react";
import type { StopState } from "../../client/api";
import { request } from "../../client/http";
import { useAnswer } from "../../ui/answers";
import { useToasts } from "../../ui/Toasts";
import { useTopic } from "../shell/live";

interface Stop {
  /** Null until it is known. */
  state: StopState | null;
  stop: () => Promise<void>;
  lift: () => Promise<void>;
}

const Context = createContext<Stop | null>(null);

export function useStop(): Stop {
  const stop = useContext(Context);
  if (stop === null) throw new Error("no StopProvider above");
  return stop;
}

const CHANGES = new Set(["models.stopped", "models.resumed"]);

/** Whether the owner has stopped everything, live. */
export function StopProvider({ children }: { children: ReactNode }) {
  const { value, reload, put } = useAnswer<StopState>("/v1/stop");
  const toasts = useToasts();
  useTopic(
    "timeline",
    {
      event: (data) => {
        if (CHANGES.has((data as { kind: string }).kind)) reload();
      },
      resync: reload,
      subscribed: reload,
    },
    { durable: true },
  );
  const post = useCallback(
    async (path: string, said: string) => {
      try {
        put(await request<StopState>(path, { method: "POST", body: {} }));
        toasts.done(said);
      } catch (error) {
        toasts.failed(error);
      }
    },
    [put, toasts],
  );
  const stop = useMemo<Stop>(
    () => ({
      state: value,
      stop: () => post("/v1/stop", "Every agent is stopped"),
      lift: () => post("/v1/stop/lift", "Agents may work again"),
    }),
    [value, post],
  );
  return <Context.Provider value={stop}>{children}</Context.Provider>;
}

/** On every page while everything is stopped: why, and the way out. */
export function StopBar() {
  const { state, lift } = useStop();
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
