import type { FileChange, RunChanges } from "../../client/api";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { Dialog } from "../../ui/Dialog";
import { formatBytes } from "../../ui/format";
import { visibleText } from "../../ui/visibleText";
import { UnifiedDiffTable } from "../history/DiffTable";

interface ChangesDialogProps {
  changes: RunChanges;
  busy: boolean;
  onTake: (how: "merge" | "drop", force: boolean) => void;
  onClose: () => void;
}

/** What a run has changed in its copy, beside the files as they are now. From here it is merged or dropped. */
export function ChangesDialog({ changes, busy, onTake, onClose }: ChangesDialogProps) {
  const hasConflict = changes.files.some((file) => file.conflict);
  return (
    <Dialog title={`Changes of “${visibleText(changes.run.title)}”`} onClose={onClose} wide>
      {changes.files.length === 0 && <p className="empty">No changes.</p>}
      {changes.total > changes.files.length && (
        <p className="problem-text">
          Not all are shown: {changes.total - changes.files.length} of {changes.total} files are not listed here. A
          merge takes all of them.
        </p>
      )}
      {hasConflict && (
        <p className="problem-text">
          Others have changed the same lines meanwhile. A merge overwrites their change; you can undo it in History.
        </p>
      )}
      <div className="runs-changes">
        {changes.files.map((file) => (
          <ChangedFile key={file.path} file={file} />
        ))}
      </div>
      <div className="dialog-foot">
        <button type="button" onClick={onClose}>
          Close
        </button>
        {changes.files.length > 0 && (
          <ConfirmButton
            className=""
            label="Drop changes"
            confirmLabel="Drop changes?"
            disabled={busy}
            onConfirm={() => onTake("drop", false)}
          />
        )}
        {changes.files.length > 0 &&
          (hasConflict ? (
            <ConfirmButton
              className="danger"
              label="Overwrite and merge"
              confirmLabel="Overwrite and merge?"
              disabled={busy}
              onConfirm={() => onTake("merge", true)}
            />
          ) : (
            <button type="button" className="primary" disabled={busy} onClick={() => onTake("merge", false)}>
              Merge
            </button>
          ))}
      </div>
    </Dialog>
  );
}

function ChangedFile({ file }: { file: FileChange }) {
  return (
    <section>
      <h3 className="runs-file">
        <span className="path">{visibleText(file.path)}</span>{" "}
        <span className="quiet">
          {file.kind}, {formatBytes(file.size)}
        </span>
        {file.traits.map((trait) => (
          <span key={trait} className="chip" data-tone="amber">
            {visibleText(trait)}
          </span>
        ))}
        {file.conflict && (
          <span className="chip" data-tone="alarm">
            changed by others too
          </span>
        )}
      </h3>
      {file.diff === null ? <p className="quiet">No lines to show.</p> : <UnifiedDiffTable text={file.diff} />}
    </section>
  );
}
