import { type FormEvent, useState } from "react";
import type { Bead } from "../../client/api";
import { Dialog } from "../../ui/Dialog";
import { visibleText } from "../../ui/visibleText";
import { needsEvidence } from "./board.logic";

interface CloseDialogProps {
  bead: Bead;
  busy: boolean;
  onCancel: () => void;
  onClose: (bead: Bead, reason: string, evidence: string | null) => Promise<boolean>;
}

/** Asks why an item is closed, and where an agent has worked, what shows that it is done. */
export function CloseDialog({ bead, busy, onCancel, onClose }: CloseDialogProps) {
  const [reason, setReason] = useState("");
  const [evidence, setEvidence] = useState("");
  const isComplete = reason.trim() !== "" && (!needsEvidence(bead) || evidence.trim() !== "");

  function submit(event: FormEvent) {
    event.preventDefault();
    if (isComplete) void onClose(bead, reason.trim(), evidence.trim() === "" ? null : evidence.trim());
  }

  return (
    <Dialog title={`Close “${visibleText(bead.title)}”`} onClose={onCancel}>
      <form className="beads-close" onSubmit={submit}>
        <label>
          Reason
          <input value={reason} maxLength={2000} onChange={(event) => setReason(event.target.value)} />
        </label>
        {needsEvidence(bead) && (
          <label>
            Evidence: what shows that it is done, such as a test that passes
            <textarea
              rows={4}
              value={evidence}
              maxLength={20000}
              onChange={(event) => setEvidence(event.target.value)}
            />
          </label>
        )}
        <div className="dialog-foot">
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={busy || !isComplete}>
            Close item
          </button>
        </div>
      </form>
    </Dialog>
  );
}
