import { createContext, type ReactNode, useCallback, useContext, useMemo } from "react";
import type { EgressState } from "../../client/api";
import { type Problem, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { useToasts } from "../../ui/Toasts";
import type { NetworkAnswer } from "./egress.logic";

interface Egress {
  state: EgressState | null;
  problem: Problem | null;
  reload: () => void;
  answer: (networkRequest: number, answer: NetworkAnswer) => Promise<void>;
  addRule: (verdict: "allow" | "deny", pattern: string) => Promise<boolean>;
  removeRule: (pattern: string) => Promise<void>;
}

const EgressContext = createContext<Egress | null>(null);

export function useEgress(): Egress {
  const egress = useContext(EgressContext);
  if (egress === null) throw new Error("useEgress needs an EgressProvider");
  return egress;
}

/** The rules and requests of egress, kept up to date, for the bar on every page and for the network page. */
export function EgressProvider({ children }: { children: ReactNode }) {
  const { value, problem, reload, set } = useResource<EgressState>("/v1/egress", {
    topic: "egress",
    apply: (_, event) => event as EgressState,
    isSecondary: true,
  });
  const toasts = useToasts();

  const send = useCallback(
    async (method: string, path: string, body?: unknown): Promise<boolean> => {
      try {
        set(await request<EgressState>(path, { method, body }));
        return true;
      } catch (error) {
        toasts.failed(error);
        reload();
        return false;
      }
    },
    [set, reload, toasts],
  );
  const egress = useMemo<Egress>(
    () => ({
      state: value,
      problem,
      reload,
      answer: async (id, answer) => void (await send("POST", `/v1/egress/requests/${id}`, { answer })),
      addRule: (verdict, pattern) => send("POST", "/v1/egress/rules", { verdict, pattern }),
      removeRule: async (pattern) => void (await send("DELETE", `/v1/egress/rules/${encodeURIComponent(pattern)}`)),
    }),
    [value, problem, reload, send],
  );
  return <EgressContext.Provider value={egress}>{children}</EgressContext.Provider>;
}
