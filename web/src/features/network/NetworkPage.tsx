import { useState, type FormEvent } from "react";
import { useNow } from "../../ui/answers";
import { ago, bytes, fullMoment } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { decisionsOf, MODES, outcomeWords, plainTarget, questionsOf, REPLIES, rulesOf, wasLetThrough } from "./egress.logic";
import { useEgress } from "./egress";
import "./network.css";

const seconds = (at: string): number => new Date(at).getTime() / 1000;

export default function NetworkPage() {
  const egress = useEgress();
  const now = useNow();
  const [pattern, setPattern] = useState("");
  const [verdict, setVerdict] = useState<"allow" | "deny">("allow");
  const state = egress.state;

  async function add(event: FormEvent) {
    event.preventDefault();
    if (await egress.addRule(verdict, pattern.trim())) setPattern("");
  }

  return (
    <div className="column">
      <header className="head">
        <h1>Network</h1>
        <p className="quiet">What may leave the computer, and what wanted to.</p>
      </header>
      {egress.problem && <Notice problem={egress.problem} action={{ label: "Try again", run: egress.reload }} />}
      {state && (
        <>
          <section className="card mode" data-mode={state.mode}>
            <div>
              <h2>{MODES[state.mode].title}</h2>
              <p className="quiet">
                {MODES[state.mode].means} Change it with <code>egress.mode</code> in freehold.toml.
              </p>
            </div>
            <dl className="figures">
              <div>
                <dt>open now</dt>
                <dd>{state.connections}</dd>
              </div>
              <div>
                <dt>let through</dt>
                <dd>{state.counters["allowed"] ?? 0}</dd>
              </div>
              <div>
                <dt>refused</dt>
                <dd>{state.counters["refused"] ?? 0}</dd>
              </div>
              <div>
                <dt>sent / received</dt>
                <dd>
                  {bytes(state.counters["bytes_up"] ?? 0)} / {bytes(state.counters["bytes_down"] ?? 0)}
                </dd>
              </div>
            </dl>
          </section>

          <section>
            <h2>Waiting for you</h2>
            {questionsOf(state).length === 0 ? (
              <p className="empty">Nothing waits for an answer.</p>
            ) : (
              <ul className="rows">
                {questionsOf(state).map((question) => (
                  <li key={question.id} className="question-row">
                    <div>
                      <code className="target">{plainTarget(question.target)}</code>
                      <p className="quiet">
                        {question.who} · {ago(seconds(question.last_seen), now)}
                        {question.count > 1 && ` · asked ${question.count} times`}
                      </p>
                    </div>
                    <div className="replies">
                      {REPLIES.map(({ answer, label, means }) => (
                        <button key={answer} className="small" title={means} onClick={() => void egress.reply(question.id, answer)}>
                          {label}
                        </button>
                      ))}
                    </div>
                  </li>
                ))}
              </ul>
            )}
          </section>

          <section>
            <h2>Rules</h2>
            <form className="line-form" onSubmit={(event) => void add(event)}>
              <select aria-label="What to do" value={verdict} onChange={(event) => setVerdict(event.target.value as "allow" | "deny")}>
                <option value="allow">Allow</option>
                <option value="deny">Deny</option>
              </select>
              <input
                aria-label="Host"
                required
                maxLength={300}
                placeholder="api.example.com, *.example.org or a host:port"
                value={pattern}
                onChange={(event) => setPattern(event.target.value)}
                autoCapitalize="off"
                autoCorrect="off"
                spellCheck={false}
              />
              <button className="primary">Add</button>
            </form>
            {rulesOf(state).length === 0 ? (
              <p className="empty">No rules yet. Answering a question with “Always” or “Never” makes one.</p>
            ) : (
              <ul className="rows">
                {rulesOf(state).map((rule) => (
                  <li key={`${rule.verdict} ${rule.rule} ${rule.scope}`} className="rule-row">
                    <span className="chip" data-tone={rule.verdict === "allow" ? "leaf" : "alarm"}>
                      {rule.verdict}
                    </span>
                    <code className="target">{plainTarget(rule.rule)}</code>
                    <span className="quiet">{rule.scope}</span>
                    <button className="small" onClick={() => void egress.forgetRule(rule.rule)} aria-label={`Forget the rule for ${rule.rule}`}>
                      Forget
                    </button>
                  </li>
                ))}
              </ul>
            )}
          </section>

          <section>
            <h2>Last decisions</h2>
            {decisionsOf(state).length === 0 ? (
              <p className="empty">Nothing has tried to leave the computer yet.</p>
            ) : (
              <ul className="rows">
                {decisionsOf(state).map((row, index) => (
                  <li key={`${row.at} ${index}`} className="decision-row">
                    <span className="chip" data-tone={wasLetThrough(row.outcome) ? "leaf" : "alarm"}>
                      {outcomeWords(row.outcome)}
                    </span>
                    <code className="target">{plainTarget(row.target)}</code>
                    <span className="quiet reason">{row.reason}</span>
                    <time className="quiet" title={fullMoment(seconds(row.at))}>
                      {ago(seconds(row.at), now)}
                    </time>
                  </li>
                ))}
              </ul>
            )}
          </section>
        </>
      )}
    </div>
  );
}
