import { type FormEvent, useState } from "react";
import type { ApprovalPolicy, WritePermissionRule } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { visibleText } from "../../ui/visibleText";
import { KIND_CHOICES, kindText, withoutRule, withRule } from "./permissionRules.logic";

const TONES = { allow: "leaf", ask: "amber", deny: "alarm" } as const;

/** The permission rules: what agents may do without asking, and what they may never do. */
export function PermissionRulesDialog({ onClose }: { onClose: () => void }) {
  const { value, problem, reload, set } = useResource<ApprovalPolicy>("/v1/approvals/policy");
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<Problem | null>(null);
  const [effect, setEffect] = useState<WritePermissionRule["effect"]>("allow");
  const [kind, setKind] = useState("execute");
  const [pattern, setPattern] = useState("");

  async function write(rules: WritePermissionRule[]): Promise<boolean> {
    setBusy(true);
    try {
      set(await request<ApprovalPolicy>("/v1/approvals/policy", { method: "PUT", body: { rules } }));
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
    if (await write(withRule(value?.rules ?? [], { effect, kind, pattern: pattern.trim(), exact: false })))
      setPattern("");
  }

  return (
    <Dialog title="Permission rules" onClose={onClose} wide>
      <p className="quiet">
        Agents ask before every action that no rule covers. The answers “Always” and “This conversation” add a rule for
        exactly the action that was shown.
      </p>
      {problem && <Notice problem={problem} action={{ label: "Try again", run: reload }} />}
      {value?.rules.length === 0 && <p className="empty">No rules yet. Agents ask before every action.</p>}
      {value && value.rules.length > 0 && (
        <ul className="rows approvals-rules">
          {value.rules.map((rule) => (
            <li key={rule.id}>
              <span className="chip" data-tone={TONES[rule.effect]}>
                {rule.effect}
              </span>
              <span className="grow">
                {kindText(rule.kind)} <code className="path">{visibleText(rule.pattern)}</code>
                {rule.session !== null && <span className="quiet"> · in one conversation</span>}
              </span>
              {rule.session === null && (
                <button
                  className="small"
                  disabled={busy}
                  onClick={() => void write(withoutRule(value.rules, rule.id))}
                  aria-label={`Remove the rule for ${visibleText(rule.pattern)}`}
                >
                  Remove
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      {value && (
        <form className="approvals-rule-form" onSubmit={(event) => void add(event)}>
          <select
            aria-label="Rule"
            value={effect}
            onChange={(event) => setEffect(event.target.value as WritePermissionRule["effect"])}
          >
            <option value="allow">Allow</option>
            <option value="ask">Ask</option>
            <option value="deny">Deny</option>
          </select>
          <select aria-label="Action" value={kind} onChange={(event) => setKind(event.target.value)}>
            {KIND_CHOICES.map((one) => (
              <option key={one.kind} value={one.kind}>
                {one.label}
              </option>
            ))}
          </select>
          <input
            aria-label="Command or path"
            placeholder={kind === "execute" ? "git status*" : "/workspace/notes/*"}
            required
            maxLength={10_000}
            value={pattern}
            onChange={(event) => setPattern(event.target.value)}
            autoCapitalize="off"
            autoCorrect="off"
            spellCheck={false}
          />
          <button className="primary" disabled={busy || pattern.trim() === ""}>
            Add rule
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
