import { createContext, useCallback, useContext, useEffect, useMemo, useState, type ReactNode } from "react";
import type { AgentRow, ModelsState } from "../../../client/api";
import { useAnswer } from "../../../ui/answers";
import { useTopic } from "../../shell/live";
import { go } from "../../shell/route";
import { firstSteps, type FirstSteps } from "./first.logic";

interface First {
  steps: FirstSteps | null;
  reload: () => void;
  /** Counts how often the owner was led to the steps. */
  shown: number;
  show: () => void;
}

const Context = createContext<First>({ steps: null, reload: () => undefined, shown: 0, show: () => undefined });

export const useFirst = () => useContext(Context);

/** What is missing before anyone can work, known anew when an agent comes and when the gateway was restarted. */
export function FirstProvider({ children }: { children: ReactNode }) {
  const { value: agents, reload: reloadAgents } = useAnswer<AgentRow[]>("/v1/agents");
  const { value: models, reload: reloadModels } = useAnswer<ModelsState>("/v1/models");
  const [shown, setShown] = useState(0);
  const reload = useCallback(() => {
    reloadAgents();
    reloadModels();
  }, [reloadAgents, reloadModels]);
  useTopic("agents", { subscribed: reload, resync: reload });
  useEffect(() => {
    window.addEventListener("focus", reload);
    return () => window.removeEventListener("focus", reload);
  }, [reload]);
  const steps = useMemo(() => firstSteps(agents, models), [agents, models]);
  const show = useCallback(() => {
    go("/sessions");
    setShown((count) => count + 1);
  }, []);
  const first = useMemo(() => ({ steps, reload, shown, show }), [steps, reload, shown, show]);
  return <Context.Provider value={first}>{children}</Context.Provider>;
}
