import { useEffect, useState } from "react";
import type { Rewound } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { Steps } from "./Steps";
import type { Turn } from "./history.logic";

type What = Rewound["what"];
const CHOICES: readonly { what: What; title: string; words: string }[] = [
  { what: "both", title: "Both", words: "The files and the conversation, as before this turn" },
  { what: "files", title: "Files only", words: "The conversation stays as it is" },
  { what: "chat", title: "Conversation only", words: "The files stay as they are" },
];

/** Back to before a turn: shows what would be taken back, and does it on the owner's word. */
export function RewindDialog({ turn: { session, turn }, onClose, onDone }: { turn: Turn; onClose: () => void; onDone: () => void }) {
  const [what, setWhat] = useState<What>("both");
  const [plan, setPlan] = useState<Rewound | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const toasts = useToasts();
  const address = `/v1/sessions/${encodeURIComponent(session)}/rewind`;

  useEffect(() => {
    let current = true;
    setPlan(null);
    setProblem(null);
    request<Rewound>(address, { method: "POST", body: { turn, what, dry_run: true } })
      .then((found) => current && setPlan(found))
      .catch((error: unknown) => current && setProblem(problemOf(error)));
    return () => {
      current = false;
    };
  }, [address, turn, what]);

  async function carryOut() {
    setBusy(true);
    try {
      await request<Rewound>(address, { method: "POST", body: { turn, what } });
      toasts.done("Back to before that turn");
      onDone();
      onClose();
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  }

  const files = plan?.files as { steps?: Record<string, string>[]; total?: number } | null | undefined;
  return (
    <Dialog title={`Rewind to before turn ${turn}`} onClose={onClose} wide>
      <fieldset className="rewind-choices">
        <legend className="unseen">What to take back</legend>
        {CHOICES.map((choice) => (
          <label key={choice.what} className="radio">
            <input type="radio" name="rewind" checked={what === choice.what} onChange={() => setWhat(choice.what)} />
            <span>
              <strong>{choice.title}</strong> <span className="quiet">{choice.words}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {problem && <Notice problem={problem} />}
      {plan === null && problem === null && <p className="quiet">Looking at what would happen…</p>}
      {files?.steps && <Steps steps={files.steps} total={files.total ?? files.steps.length} />}
      {plan !== null && what !== "files" && (
        <p className="quiet">{plan.events === 0 ? "Nothing was said since." : `${plan.events} ${plan.events === 1 ? "event leaves" : "events leave"} the conversation: this cannot be undone.`}</p>
      )}
      <div className="dialog-foot">
        <button onClick={onClose}>Cancel</button>
        <button className="primary" disabled={busy || plan === null} onClick={() => void carryOut()}>
          {busy ? "Working…" : "Rewind"}
        </button>
      </div>
    </Dialog>
  );
}
