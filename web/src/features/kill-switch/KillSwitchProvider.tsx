import { createContext, type ReactNode, useCallback, useContext, useMemo } from "react";
import type { StopState } from "../../client/api";
import { request } from "../../client/http";
import { hasKind, type ResourceHandle, useResource } from "../../data/resource";
import { useToasts } from "../../ui/Toasts";

/** Whether the kill switch is on, and how to turn it on and off. */
interface KillSwitch extends Pick<ResourceHandle<StopState>, "value" | "problem" | "reload"> {
  stopped: boolean;
  stopAll: (reason: string) => Promise<void>;
  resume: () => Promise<void>;
}

const KillSwitchContext = createContext<KillSwitch | null>(null);

export function useKillSwitch(): KillSwitch {
  const killSwitch = useContext(KillSwitchContext);
  if (killSwitch === null) throw new Error("useKillSwitch needs a KillSwitchProvider");
  return killSwitch;
}

export function KillSwitchProvider({ children }: { children: ReactNode }) {
  const { value, problem, reload, set } = useResource<StopState>("/v1/stop", {
    topic: "timeline",
    durable: true,
    concerns: (event) => hasKind(event, "models.stopped", "models.resumed", "agents.ended"),
    isSecondary: true,
  });
  const toasts = useToasts();
  const send = useCallback(
    async (path: string, body: object | undefined, message: string) => {
      try {
        set(await request<StopState>(path, body === undefined ? { method: "POST" } : { method: "POST", body }));
        toasts.done(message);
      } catch (error) {
        toasts.failed(error);
        reload();
      }
    },
    [set, reload, toasts],
  );
  const killSwitch = useMemo<KillSwitch>(
    () => ({
      value,
      problem,
      reload,
      stopped: value?.stopped === true,
      stopAll: (why) => send("/v1/stop", { why }, "All agents are stopped"),
      resume: () => send("/v1/stop/lift", undefined, "Agents can work again"),
    }),
    [value, problem, reload, send],
  );
  return <KillSwitchContext.Provider value={killSwitch}>{children}</KillSwitchContext.Provider>;
}
