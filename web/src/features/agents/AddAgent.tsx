import { useState } from "react";
import type { AgentInfo } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useTopic } from "../../data/connection";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { agentActions, type InstallProgress, progressText, readProgress } from "./agents.logic";
import "./agents.css";

/** A button that installs an agent and shows the progress. */
export function AddAgent({ agent, onAdded }: { agent: AgentInfo; onAdded: () => void }) {
  const [busy, setBusy] = useState(false);
  const [progress, setProgress] = useState<InstallProgress | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useTopic("agents", {
    event: (data) => {
      const received = readProgress(data);
      if (received?.agent !== agent.name) return;
      const isDone = received.doing === "installed";
      setProgress(isDone ? null : received);
      if (isDone) onAdded();
    },
  });

  async function add() {
    setBusy(true);
    setProblem(null);
    try {
      await request(`/v1/agents/${encodeURIComponent(agent.name)}/install`, { method: "POST" });
      onAdded();
    } catch (error) {
      setProblem(problemOf(error));
    }
    setProgress(null);
    setBusy(false);
  }

  const isInstalling = busy || progress !== null;
  const verb = agentActions(agent).add ?? "Add";
  return (
    <div className="agents-add">
      <button type="button" className="primary" disabled={isInstalling} onClick={() => void add()}>
        <Icon name="plus" size={18} /> {isInstalling ? `Adding ${agent.title}…` : `${verb} ${agent.title}`}
      </button>
      <p className="quiet" role="status">
        {progress ? progressText(progress) : busy ? "Preparing…" : ""}
      </p>
      {isInstalling && <InstallBar agent={agent} progress={progress} />}
      {problem && <Notice problem={problem} />}
    </div>
  );
}

/** The progress of an installation. Without numbers the bar only moves. */
export function InstallBar({ agent, progress }: { agent: AgentInfo; progress: InstallProgress | null }) {
  const numbers = progress !== null && progress.total > 0 ? { max: progress.total, value: progress.done } : {};
  return <progress className="wide" aria-label={`Adding ${agent.title}`} {...numbers} />;
}
