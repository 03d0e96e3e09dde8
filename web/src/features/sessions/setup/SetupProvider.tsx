import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from "react";
import type { AgentInfo, ModelsState } from "../../../client/api";
import { useResource } from "../../../data/resource";
import { go } from "../../../ui/route";
import { isInstalled } from "../../agents/agents.logic";
import { type Setup, setupOf } from "./setup.logic";

interface SetupState {
  setup: Setup | null;
  reload: () => void;
  /** Counts how often the steps were shown, so that they take the focus. */
  timesShown: number;
  showSteps: () => void;
}

const SetupContext = createContext<SetupState>({
  setup: null,
  reload: () => undefined,
  timesShown: 0,
  showSteps: () => undefined,
});

export const useSetup = () => useContext(SetupContext);

/** What is missing before a session can start. It is fetched again when an agent was added or the window is focused. */
export function SetupProvider({ children }: { children: ReactNode }) {
  const options = { topic: "agents", concerns: isInstalled };
  const { value: agents, reload: reloadAgents } = useResource<AgentInfo[]>("/v1/agents", options);
  const { value: models, reload: reloadModels } = useResource<ModelsState>("/v1/models", options);
  const [timesShown, setTimesShown] = useState(0);
  const reload = useCallback(() => {
    reloadAgents();
    reloadModels();
  }, [reloadAgents, reloadModels]);
  useEffect(() => {
    window.addEventListener("focus", reload);
    return () => window.removeEventListener("focus", reload);
  }, [reload]);
  const setup = useMemo(() => setupOf(agents, models), [agents, models]);
  const showSteps = useCallback(() => {
    go("/sessions");
    setTimesShown((count) => count + 1);
  }, []);
  const state = useMemo(() => ({ setup, reload, timesShown, showSteps }), [setup, reload, timesShown, showSteps]);
  return <SetupContext.Provider value={state}>{children}</SetupContext.Provider>;
}
