import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from "react";
import type { AgentInfo, ModelsState } from "../../../client/api";
import { AGENTS, MODELS } from "../../../client/early";
import { useResource } from "../../../data/resource";
import { go } from "../../../ui/route";
import { isInstalled } from "../../agents/agents.logic";
import { ConnectDialog } from "../../models/ConnectDialog";
import { type Setup, setupOf } from "./setup.logic";

interface SetupState {
  setup: Setup | null;
  /** Null while they are not known. */
  agents: readonly AgentInfo[] | null;
  models: ModelsState | null;
  reload: () => void;
  /** Counts how often the steps were shown, so that they take the focus. */
  timesShown: number;
  /** Shows what is missing: the steps, or the connection of a model when only that is missing. */
  showSteps: () => void;
  connectModel: () => void;
}

const SetupContext = createContext<SetupState>({
  setup: null,
  agents: null,
  models: null,
  reload: () => undefined,
  timesShown: 0,
  showSteps: () => undefined,
  connectModel: () => undefined,
});

export const useSetup = () => useContext(SetupContext);

/** What is missing before a session can start. It is fetched again when an agent was added or the window is focused. */
export function SetupProvider({ children }: { children: ReactNode }) {
  const options = { topic: "agents", concerns: isInstalled };
  const { value: agents, reload: reloadAgents } = useResource<AgentInfo[]>(AGENTS, options);
  const { value: models, reload: reloadModels } = useResource<ModelsState>(MODELS, options);
  const [timesShown, setTimesShown] = useState(0);
  const [connecting, setConnecting] = useState(false);
  const reload = useCallback(() => {
    reloadAgents();
    reloadModels();
  }, [reloadAgents, reloadModels]);
  useEffect(() => {
    window.addEventListener("focus", reload);
    return () => window.removeEventListener("focus", reload);
  }, [reload]);
  const setup = useMemo(() => setupOf(agents, models), [agents, models]);
  const connectModel = useCallback(() => setConnecting(true), []);
  const needsOnlyModel = setup !== null && setup.missingAgent === null && setup.needsModel;
  const showSteps = useCallback(() => {
    go("/sessions");
    setTimesShown((count) => count + 1);
    if (needsOnlyModel) setConnecting(true);
  }, [needsOnlyModel]);
  const state = useMemo(
    () => ({ setup, agents, models, reload, timesShown, showSteps, connectModel }),
    [setup, agents, models, reload, timesShown, showSteps, connectModel],
  );
  return (
    <SetupContext.Provider value={state}>
      {children}
      {connecting && (
        <ConnectDialog
          onClose={() => setConnecting(false)}
          onConnected={() => {
            setConnecting(false);
            reload();
          }}
        />
      )}
    </SetupContext.Provider>
  );
}
