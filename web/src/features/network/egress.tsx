import { createContext, useCallback, useContext, type ReactNode } from "react";
import type { EgressState } from "../../client/api";
import { request, type Problem } from "../../client/http";
import { useAnswer } from "../../ui/answers";
import { useToasts } from "../../ui/Toasts";
import { useTopic } from "../shell/live";
import type { Reply } from "./egress.logic";

interface Egress {
  state: EgressState | null;
  problem: Problem | null;
  reload: () => void;
  reply: (question: number, answer: Reply) => Promise<void>;
  addRule: (verdict: "allow" | "deny", pattern: string) => Promise<boolean>;
  forgetRule: (pattern: string) => Promise<void>;
}

const Context = createContext<Egress | null>(null);

export function useEgress(): Egress {
  const egress = useContext(Context);
  if (egress === null) throw new Error("no EgressProvider above");
  return egress;
}

/** What may leave the computer, live, for the bar on every page and the network page. */
export function EgressProvider({ children }: { children: ReactNode }) {
  const { value, problem, reload, put } = useAnswer<EgressState>("/v1/egress");
  const toasts = useToasts();
  useTopic("egress", { event: (data) => put(data as EgressState), resync: reload });

  const act = useCallback(
    async (method: string, path: string, body?: unknown): Promise<boolean> => {
      try {
        put(await request<EgressState>(path, { method, body }));
        return true;
      } catch (error) {
        toasts.failed(error);
        reload();
        return false;
      }
    },
    [put, reload, toasts],
  );
  const egress: Egress = {
    state: value,
    problem,
    reload,
    reply: async (question, answer) => void (await act("POST", `/v1/egress/questions/${question}`, { answer })),
    addRule: (verdict, pattern) => act("POST", "/v1/egress/rules", { verdict, pattern }),
    forgetRule: async (pattern) => void (await act("DELETE", `/v1/egress/rules/${encodeURIComponent(pattern)}`)),
  };
  return <Context.Provider value={egress}>{children}</Context.Provider>;
}
