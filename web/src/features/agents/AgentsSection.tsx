import { useState } from "react";
import type { AgentInfo, AgentTrial } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useTopic } from "../../data/connection";
import { useResource } from "../../data/resource";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { Facts } from "../../ui/Facts";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { InstallBar } from "./AddAgent";
import {
  agentActions,
  agentProblem,
  asksText,
  capabilitiesOf,
  type InstallProgress,
  isInstalled,
  progressText,
  readProgress,
  trialFacts,
} from "./agents.logic";
import "./agents.css";

type Activity = "adding" | "removing" | "testing";
type AgentState = { activity: Activity } | { problem: Problem } | { trial: AgentTrial };

/** The agents: adds, tests and removes them. */
export function AgentsSection() {
  const { value, problem, reload } = useResource<AgentInfo[]>("/v1/agents", { topic: "agents", concerns: isInstalled });
  const [states, setStates] = useState<Record<string, AgentState | undefined>>({});
  const [progress, setProgress] = useState<Record<string, InstallProgress | undefined>>({});
  const toasts = useToasts();
  useTopic("agents", {
    event: (data) => {
      const received = readProgress(data);
      if (received === null) return;
      setProgress((before) => ({ ...before, [received.agent]: isInstalled(data) ? undefined : received }));
    },
  });

  async function act<T>(
    agent: AgentInfo,
    activity: Activity,
    call: { method: "POST" | "DELETE"; path: string },
    onDone: (reply: T) => AgentState | undefined,
  ) {
    setStates((before) => ({ ...before, [agent.name]: { activity } }));
    let state: AgentState | undefined;
    try {
      const path = `/v1/agents/${encodeURIComponent(agent.name)}${call.path}`;
      state = onDone(await request<T>(path, { method: call.method }));
    } catch (error) {
      state = { problem: problemOf(error) };
    }
    setStates((before) => ({ ...before, [agent.name]: state }));
    setProgress((before) => ({ ...before, [agent.name]: undefined }));
    reload();
  }

  const toast = (message: string) => () => {
    toasts.done(message);
    return undefined;
  };
  // What is below the list waits for it, so that nothing moves when it arrives.
  if (value === null && problem === null) return <p className="loading quiet fade-in-late">Loading…</p>;
  return (
    <section aria-label="Agents">
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      <ul className="rows">
        {value?.map((agent) => (
          <AgentRow
            key={agent.name}
            agent={agent}
            state={states[agent.name]}
            progress={progress[agent.name] ?? null}
            onAdd={() =>
              void act(agent, "adding", { method: "POST", path: "/install" }, toast(`${agent.title} was added`))
            }
            onRemove={() =>
              void act(
                agent,
                "removing",
                { method: "DELETE", path: "" },
                toast(`${agent.title} was removed. Its sessions are kept.`),
              )
            }
            onTest={() =>
              void act<AgentTrial>(agent, "testing", { method: "POST", path: "/test" }, (trial) => ({ trial }))
            }
          />
        ))}
      </ul>
      <p className="quiet small-print">
        Agents run inside the computer and never see your keys. <code>agents.default</code> in freehold.toml sets the
        agent of new sessions. Add other agents that speak ACP there under <code>[agents.NAME]</code>.
      </p>
    </section>
  );
}

interface AgentRowProps {
  agent: AgentInfo;
  state: AgentState | undefined;
  progress: InstallProgress | null;
  onAdd: () => void;
  onRemove: () => void;
  onTest: () => void;
}

function AgentRow({ agent, state, progress, onAdd, onRemove, onTest }: AgentRowProps) {
  const actions = agentActions(agent);
  const activity = state !== undefined && "activity" in state ? state.activity : null;
  const busy = activity !== null || progress !== null;
  const isAdding = activity === "adding" || progress !== null;
  const problem = agentProblem(agent);
  return (
    <li className="wrapping-row" data-agent={agent.name}>
      <div className="grow">
        <p className="row-title">
          <strong>{agent.title}</strong> {agent.version && <span className="quiet">{agent.version}</span>}{" "}
          {agent.default && (
            <span className="chip" data-tone="leaf">
              default
            </span>
          )}{" "}
          {agent.asks === false && (
            <span className="chip" data-tone={agent.may_act_unasked ? "amber" : "alarm"} title={asksText(agent)}>
              acts without asking
            </span>
          )}
        </p>
        <p className="quiet">{asksText(agent)}</p>
        {!busy && (problem ? <p className="quiet">{problem}</p> : <p className="success-text">ready</p>)}
        <div role="status">
          {isAdding && <p className="quiet">{progress ? progressText(progress) : "Preparing…"}</p>}
          {activity === "testing" && <p className="quiet">Running one turn with a scripted model in the computer…</p>}
        </div>
        {isAdding && <InstallBar agent={agent} progress={progress} />}
        {state !== undefined && "problem" in state && <Notice problem={state.problem} />}
        {state !== undefined && "trial" in state && <TrialResult trial={state.trial} />}
      </div>
      <div className="answers">
        {actions.add && (
          <button
            type="button"
            className="small"
            disabled={busy}
            onClick={onAdd}
            aria-label={`${actions.add} ${agent.title}`}
          >
            {actions.add}
          </button>
        )}
        {actions.test && (
          <button type="button" className="small" disabled={busy} onClick={onTest} aria-label={`Test ${agent.title}`}>
            Test
          </button>
        )}
        {actions.remove && (
          <ConfirmButton
            className="small danger"
            label="Remove"
            confirmLabel="Press again to remove"
            spoken={`Remove ${agent.title}`}
            disabled={busy}
            onConfirm={onRemove}
          />
        )}
      </div>
    </li>
  );
}

function TrialResult({ trial }: { trial: AgentTrial }) {
  const capabilities = capabilitiesOf(trial);
  return (
    <div className="agents-trial">
      <p className="success-text">The agent works.</p>
      <Facts
        facts={[
          ...trialFacts(trial),
          ...(capabilities.length > 0 ? [["capabilities", capabilities.join(", ")] as const] : []),
        ]}
      />
    </div>
  );
}
