import { useState } from "react";
import type { AgentRow, AgentTrial } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { useAnswer } from "../../ui/answers";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { TwoPress } from "../../ui/TwoPress";
import { useTopic } from "../shell/live";
import { capabilitiesOf, offersOf, problemWords, progressWords, readInstalling, trialFacts, type Installing } from "./agents.logic";

type Work = { doing: "adding" | "removing" | "testing" } | { problem: Problem } | { trial: AgentTrial };

/** Who can work here: brought, tried and removed. */
export function AgentsSection() {
  const { value, problem, reload } = useAnswer<AgentRow[]>("/v1/agents");
  const [work, setWork] = useState<Record<string, Work | undefined>>({});
  const [told, setTold] = useState<Record<string, Installing | undefined>>({});
  const toasts = useToasts();
  useTopic("agents", {
    event: (data) => {
      const heard = readInstalling(data);
      if (heard === null) return;
      const over = heard.doing === "installed";
      setTold((before) => ({ ...before, [heard.agent]: over ? undefined : heard }));
      if (over) reload();
    },
    resync: reload,
  });

  async function act<T>(agent: AgentRow, doing: "adding" | "removing" | "testing", method: "POST" | "DELETE", path: string, then: (answer: T) => Work | undefined) {
    setWork((before) => ({ ...before, [agent.name]: { doing } }));
    let after: Work | undefined;
    try {
      after = then(await request<T>(`/v1/agents/${encodeURIComponent(agent.name)}${path}`, { method }));
    } catch (error) {
      after = { problem: problemOf(error) };
    }
    setWork((before) => ({ ...before, [agent.name]: after }));
    setTold((before) => ({ ...before, [agent.name]: undefined }));
    reload();
  }

  const done = (said: string) => () => {
    toasts.done(said);
    return undefined;
  };
  return (
    <section aria-label="Agents">
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      <ul className="rows">
        {value?.map((agent) => (
          <Agent
            key={agent.name}
            agent={agent}
            work={work[agent.name]}
            told={told[agent.name]}
            onAdd={() => void act(agent, "adding", "POST", "/install", done(`${agent.title} is here`))}
            onRemove={() => void act(agent, "removing", "DELETE", "", done(`${agent.title} is removed; its sessions stay`))}
            onTest={() => void act<AgentTrial>(agent, "testing", "POST", "/test", (trial) => ({ trial }))}
          />
        ))}
      </ul>
      <p className="quiet small-print">
        Agents run in the computer and never see a key. <code>agents.default</code> in freehold.toml names the one that new sessions get;
        others that speak ACP are added there under <code>[agents.NAME]</code>.
      </p>
    </section>
  );
}

interface AgentProps {
  agent: AgentRow;
  work: Work | undefined;
  told: Installing | undefined;
  onAdd: () => void;
  onRemove: () => void;
  onTest: () => void;
}

function Agent({ agent, work, told, onAdd, onRemove, onTest }: AgentProps) {
  const offers = offersOf(agent);
  const doing = work !== undefined && "doing" in work ? work.doing : null;
  const busy = doing !== null || told !== undefined;
  return (
    <li className="agent" data-agent={agent.name}>
      <div className="grow">
        <p className="row-title">
          <strong>{agent.title}</strong> {agent.version && <span className="quiet">{agent.version}</span>}{" "}
          {agent.default && (
            <span className="chip" data-tone="leaf">
              default
            </span>
          )}{" "}
          {!agent.asks && (
            <span className="chip" data-tone="amber" title="It does not ask before it acts; the walls and the network rules still hold">
              acts without asking
            </span>
          )}
        </p>
        {!busy && (problemWords(agent) ? <p className="quiet">{problemWords(agent)}</p> : <p className="fine">ready to work</p>)}
        <div role="status">
          {told ? <p className="quiet">{progressWords(told)}</p> : doing === "adding" ? <p className="quiet">Getting ready…</p> : null}
          {doing === "testing" && <p className="quiet">One turn with a scripted model, in the computer…</p>}
        </div>
        {(doing === "adding" || told !== undefined) && (
          <progress className="wide" aria-label={`Adding ${agent.title}`} {...(told && told.total > 0 ? { max: told.total, value: told.done } : {})} />
        )}
        {work !== undefined && "problem" in work && (
          <p className="trouble" role="alert">
            {work.problem.message}. {work.problem.hint}
          </p>
        )}
        {work !== undefined && "trial" in work && <Trial trial={work.trial} />}
      </div>
      <div className="replies">
        {offers.add && (
          <button className="small" disabled={busy} onClick={onAdd} aria-label={`${offers.add} ${agent.title}`}>
            {offers.add}
          </button>
        )}
        {offers.test && (
          <button className="small" disabled={busy} onClick={onTest} aria-label={`Test ${agent.title}`}>
            Test
          </button>
        )}
        {offers.remove && (
          <TwoPress className="small danger" label="Remove" sure="Really remove" name={`Remove ${agent.title}`} disabled={busy} onSure={onRemove} />
        )}
      </div>
    </li>
  );
}

function Trial({ trial }: { trial: AgentTrial }) {
  const can = capabilitiesOf(trial);
  return (
    <div className="trial">
      <p className="fine">It works.</p>
      <dl className="facts">
        {trialFacts(trial).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
        {can.length > 0 && (
          <div>
            <dt>can</dt>
            <dd>{can.join(", ")}</dd>
          </div>
        )}
      </dl>
    </div>
  );
}
