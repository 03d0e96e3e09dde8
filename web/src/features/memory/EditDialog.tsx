import { type FormEvent, useState } from "react";
import type { Memory } from "../../client/api";
import { Dialog } from "../../ui/Dialog";

interface EditDialogProps {
  memory: Memory;
  busy: boolean;
  onCancel: () => void;
  onSave: (memory: Memory, text: string) => void;
}

/** Corrects a memory. What the owner writes becomes the owner's word. */
export function EditDialog({ memory, busy, onCancel, onSave }: EditDialogProps) {
  const [text, setText] = useState(memory.text);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() !== "") onSave(memory, text.trim());
  }

  return (
    <Dialog title="Correct a memory" onClose={onCancel}>
      <form className="memory-edit" onSubmit={submit}>
        <label>
          Memory
          <textarea rows={6} maxLength={8000} value={text} onChange={(event) => setText(event.target.value)} />
        </label>
        <p className="quiet">Agents are told this as your word.</p>
        <div className="dialog-foot">
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={busy || text.trim() === ""}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
