import { useState } from "react";
import type { ApprovalPolicy } from "../../client/api";
import { request } from "../../client/http";
import { useAnswer } from "../../ui/answers";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { unhidden } from "../../ui/unhidden";
import { kindWords, without } from "./rules.logic";

const TONES = { allow: "leaf", ask: "amber", deny: "alarm" } as const;

/** What the owner has decided for good: which of an agent's doings need no question, and which are refused. */
export function RulesDialog({ onClose }: { onClose: () => void }) {
  const { value, problem, reload, put } = useAnswer<ApprovalPolicy>("/v1/approvals/policy");
  const [busy, setBusy] = useState(false);
  const toasts = useToasts();

  async function forget(id: number) {
    setBusy(true);
    try {
      put(await request<ApprovalPolicy>("/v1/approvals/policy", { method: "PUT", body: { rules: without(value?.rules ?? [], id) } }));
    } catch (error) {
      toasts.failed(error);
      reload();
    }
    setBusy(false);
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
                <button className="small" disabled={busy} onClick={() => void forget(rule.id)} aria-label={`Forget the rule for ${unhidden(rule.pattern)}`}>
                  Forget
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      <div className="dialog-foot">
        <button onClick={onClose} autoFocus>
          Close
        </button>
      </div>
    </Dialog>
  );
}
