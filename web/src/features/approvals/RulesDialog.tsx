import { useState, type FormEvent } from "react";
import type { ApprovalPolicy, WriteRule } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { useAnswer } from "../../ui/answers";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { unhidden } from "../../ui/unhidden";
import { KIND_CHOICES, kindWords, without, withRule } from "./rules.logic";

const TONES = { allow: "leaf", ask: "amber", deny: "alarm" } as const;

/** What the owner has decided for good: which of an agent's doings need no question, and which are refused. */
export function RulesDialog({ onClose }: { onClose: () => void }) {
  const { value, problem, reload, put } = useAnswer<ApprovalPolicy>("/v1/approvals/policy");
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<Problem | null>(null);
  const [effect, setEffect] = useState<WriteRule["effect"]>("allow");
  const [kind, setKind] = useState("execute");
  const [pattern, setPattern] = useState("");

  async function write(rules: WriteRule[]): Promise<boolean> {
    setBusy(true);
    try {
      put(await request<ApprovalPolicy>("/v1/approvals/policy", { method: "PUT", body: { rules } }));
      setFailed(null);
      return true;
    } catch (error) {
      setFailed(problemOf(error));
      return false;
    } finally {
      setBusy(false);
    }
  }

  async function add(event: FormEvent) {
    event.preventDefault();
    if (await write(withRule(value?.rules ?? [], { effect, kind, pattern: pattern.trim(), exact: false }))) setPattern("");
  }

  return (
    <Dialog title="What agents may do" onClose={onClose} wide>
      <p className="quiet">Whatever no rule names is asked. “Always” and “This session” make a rule for exactly what was shown.</p>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {value?.rules.length === 0 && <p className="empty">No rules: agents ask for everything.</p>}
      {value && value.rules.length > 0 && (
        <ul className="rows rules">
          {value.rules.map((rule) => (
            <li key={rule.id}>
              <span className="chip" data-tone={TONES[rule.effect]}>
                {rule.effect}
              </span>
              <span className="grow">
                {kindWords(rule.kind)} <code className="path">{unhidden(rule.pattern)}</code>
                {rule.session !== null && <span className="quiet"> · in one session</span>}
              </span>
              {rule.session === null && (
                <button className="small" disabled={busy} onClick={() => void write(without(value.rules, rule.id))} aria-label={`Forget the rule for ${unhidden(rule.pattern)}`}>
                  Forget
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      {value && (
        <form className="rule-form" onSubmit={(event) => void add(event)}>
          <select aria-label="What to do" value={effect} onChange={(event) => setEffect(event.target.value as WriteRule["effect"])}>
            <option value="allow">Allow</option>
            <option value="ask">Ask</option>
            <option value="deny">Deny</option>
          </select>
          <select aria-label="Which doing" value={kind} onChange={(event) => setKind(event.target.value)}>
            {KIND_CHOICES.map((one) => (
              <option key={one.kind} value={one.kind}>
                {one.label}
              </option>
            ))}
          </select>
          <input aria-label="Command or path" placeholder={kind === "execute" ? "git status*" : "/workspace/notes/*"} required maxLength={10_000} value={pattern} onChange={(event) => setPattern(event.target.value)} autoCapitalize="off" autoCorrect="off" spellCheck={false} />
          <button className="primary" disabled={busy || pattern.trim() === ""}>
            Add
          </button>
        </form>
      )}
      {failed && <Notice problem={failed} />}
      <div className="dialog-foot">
        <button onClick={onClose} autoFocus>
          Close
        </button>
      </div>
    </Dialog>
  );
}
