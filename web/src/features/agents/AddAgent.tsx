import { useState } from "react";
import type { AgentRow } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { Icon } from "../../ui/Icon";
import { useTopic } from "../shell/live";
import { offersOf, progressWords, readInstalling, type Installing } from "./agents.logic";

/** Brings one agent, and tells how far that is. */
export function AddAgent({ agent, onAdded }: { agent: AgentRow; onAdded: () => void }) {
  const [busy, setBusy] = useState(false);
  const [told, setTold] = useState<Installing | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useTopic("agents", {
    event: (data) => {
      const heard = readInstalling(data);
      if (heard === null || heard.agent !== agent.name) return;
      setTold(heard.doing === "installed" ? null : heard);
      if (heard.doing === "installed") onAdded();
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
    setTold(null);
    setBusy(false);
  }

  const working = busy || told !== null;
  const verb = offersOf(agent).add ?? "Add";
  return (
    <div className="add-agent">
      <button className="primary" disabled={working} onClick={() => void add()}>
        <Icon name="plus" size={18} /> {working ? `Adding ${agent.title}…` : `${verb} ${agent.title}`}
      </button>
      <p className="quiet" role="status">
        {told ? progressWords(told) : busy ? "Getting ready…" : ""}
      </p>
      {working && <progress aria-label={`Adding ${agent.title}`} {...(told && told.total > 0 ? { max: told.total, value: told.done } : {})} />}
      {problem && (
        <p className="trouble" role="alert">
          {problem.message}. {problem.hint}
        </p>
      )}
    </div>
  );
}
