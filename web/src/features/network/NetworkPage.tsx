import { type FormEvent, useState } from "react";
import type { EgressState } from "../../client/api";
import { countOf, formatAge, formatBytes, formatDateTime, secondsOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { go, sessionPath } from "../../ui/route";
import { useNow } from "../../ui/useNow";
import { useListedSession } from "../session-list/SessionListProvider";
import { sessionTitle } from "../session-list/sessionList.logic";
import { useEgress } from "./EgressProvider";
import {
  answerChoices,
  decisionsOf,
  type EgressRule,
  MODES,
  type NetworkRequest,
  networkRequestsOf,
  outcomeText,
  reachText,
  rulesOf,
  visibleTarget,
  wasAllowed,
} from "./egress.logic";
import "./network.css";
import { wordOf } from "../../ui/words";

export default function NetworkPage() {
  const { state, problem, reload } = useEgress();
  return (
    <div className="column">
      <header className="head">
        <h1>Network</h1>
        <p className="quiet">Which hosts programs in the computer can reach.</p>
      </header>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {state && (
        <>
          <ModeCard state={state} />
          <Requests state={state} />
          <Rules state={state} />
          <Decisions state={state} />
        </>
      )}
    </div>
  );
}

const FIGURE_WORDS = { open: "open now", allowed: "allowed", refused: "refused", bytes: "sent / received" };

function ModeCard({ state }: { state: EgressState }) {
  const { title, effect } = MODES[state.mode];
  const counter = (name: string) => state.counters[name] ?? 0;
  const figures = [
    [FIGURE_WORDS.open, state.connections],
    [FIGURE_WORDS.allowed, counter("allowed")],
    [FIGURE_WORDS.refused, counter("refused")],
    [FIGURE_WORDS.bytes, `${formatBytes(counter("bytes_up"))} / ${formatBytes(counter("bytes_down"))}`],
  ] as const;
  return (
    <section className="card network-mode" data-mode={state.mode}>
      <div>
        <h2>{title}</h2>
        <p className="quiet">
          {effect} Change this with <code>egress.mode</code> in freehold.toml.
        </p>
      </div>
      <dl className="network-figures">
        {figures.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Requests({ state }: { state: EgressState }) {
  const requests = networkRequestsOf(state);
  return (
    <section>
      <h2>Needs your answer</h2>
      {requests.length === 0 ? (
        <p className="empty">No network request needs an answer.</p>
      ) : (
        <ul className="rows">
          {requests.map((one) => (
            <RequestRow key={one.id} request={one} />
          ))}
        </ul>
      )}
    </section>
  );
}

function RequestRow({ request }: { request: NetworkRequest }) {
  const { answer } = useEgress();
  const now = useNow();
  return (
    <li className="network-request">
      <div>
        <code className="target">{visibleTarget(request.target)}</code>
        <p className="quiet">
          {request.session === null ? request.who : <SessionLink id={request.session} />} ·{" "}
          {formatAge(secondsOf(request.lastSeen), now)}
          {request.count > 1 && ` · ${countOf(request.count, "try", "tries")}`}
        </p>
      </div>
      <div className="answers">
        {answerChoices(request).map((choice) => (
          <button
            key={choice.answer}
            type="button"
            className="small"
            title={choice.effect}
            onClick={() => void answer(request.id, choice.answer)}
          >
            {choice.label}
          </button>
        ))}
      </div>
    </li>
  );
}

function SessionLink({ id }: { id: string }) {
  const session = useListedSession(id);
  return (
    <button type="button" className="text-button" onClick={() => go(sessionPath(id))}>
      {session === null ? "a session" : sessionTitle(session)}
    </button>
  );
}

function Rules({ state }: { state: EgressState }) {
  const egress = useEgress();
  const [pattern, setPattern] = useState("");
  const [verdict, setVerdict] = useState<"allow" | "deny">("allow");
  const rules = rulesOf(state);

  async function add(event: FormEvent) {
    event.preventDefault();
    if (await egress.addRule(verdict, pattern.trim())) setPattern("");
  }

  return (
    <section>
      <h2>Rules</h2>
      <form className="line-form" onSubmit={(event) => void add(event)}>
        <select
          aria-label="Action"
          value={verdict}
          onChange={(event) => setVerdict(event.target.value as "allow" | "deny")}
        >
          <option value="allow">Allow</option>
          <option value="deny">Deny</option>
        </select>
        <input
          aria-label="Host"
          required
          maxLength={300}
          placeholder="api.example.com, *.example.org or host:port"
          value={pattern}
          onChange={(event) => setPattern(event.target.value)}
          autoCapitalize="off"
          autoCorrect="off"
          spellCheck={false}
        />
        <button className="primary">Add rule</button>
      </form>
      {rules.length === 0 ? (
        <p className="empty">No rules yet. Add one here, or answer a network request with “Always” or “Never”.</p>
      ) : (
        <ul className="rows">
          {rules.map((rule) => (
            <RuleRow key={`${rule.verdict} ${rule.pattern} ${rule.reach} ${rule.session ?? ""}`} rule={rule} />
          ))}
        </ul>
      )}
    </section>
  );
}

function RuleRow({ rule }: { rule: EgressRule }) {
  const { removeRule } = useEgress();
  const pattern = visibleTarget(rule.pattern);
  return (
    <li className="network-rule">
      <span className="chip" data-tone={rule.verdict === "allow" ? "leaf" : "alarm"}>
        {wordOf(rule.verdict)}
      </span>
      <code className="target">{pattern}</code>
      <span className="quiet">
        {rule.session === null ? (
          reachText(rule.reach)
        ) : (
          <>
            {rule.reach === "once" ? "once, for" : "only for"} <SessionLink id={rule.session} />
          </>
        )}
      </span>
      <button
        type="button"
        className="small"
        onClick={() => void removeRule(rule.pattern)}
        aria-label={`Remove the rule for ${pattern}`}
      >
        Remove
      </button>
    </li>
  );
}

function Decisions({ state }: { state: EgressState }) {
  const now = useNow();
  const decisions = decisionsOf(state);
  return (
    <section>
      <h2>Last decisions</h2>
      {decisions.length === 0 ? (
        <p className="empty">No program has tried to open a connection yet.</p>
      ) : (
        <ul className="rows">
          {decisions.map((row, index) => (
            <li key={`${row.at} ${index}`} className="network-decision">
              <span className="chip" data-tone={wasAllowed(row.outcome) ? "leaf" : "alarm"}>
                {outcomeText(row.outcome)}
              </span>
              <code className="target">{visibleTarget(row.target)}</code>
              <span className="quiet network-reason">{row.reason}</span>
              <time className="quiet" title={formatDateTime(secondsOf(row.at))}>
                {formatAge(secondsOf(row.at), now)}
              </time>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
