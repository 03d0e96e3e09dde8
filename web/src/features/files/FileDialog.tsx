import { type FormEvent, useState } from "react";
import { type Problem, problemOf } from "../../client/http";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { createFile, createFolder, moveFile, removeFile } from "./fileRequests";

/** The action that a dialog is opened for. */
export type FileAction = { what: "file" | "folder"; in: string } | { what: "rename" | "delete"; path: string };

const TITLES = { file: "New file", folder: "New folder", rename: "Rename or move", delete: "Delete" } as const;

/** Creates, moves or deletes a file or folder. `onDone` gets its new path, or null when it was deleted. */
export function FileDialog({
  action,
  onClose,
  onDone,
}: {
  action: FileAction;
  onClose: () => void;
  onDone: (path: string | null) => void;
}) {
  const [name, setName] = useState("path" in action ? action.path : action.in === "" ? "" : `${action.in}/`);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);

  async function act(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    const path = name.trim();
    try {
      if (action.what === "file") await createFile(path);
      if (action.what === "folder") await createFolder(path);
      if (action.what === "rename") await moveFile(action.path, path);
      if (action.what === "delete") await removeFile(action.path);
      onDone(action.what === "delete" ? null : path);
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  }

  return (
    <Dialog title={TITLES[action.what]} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void act(event)}>
        {problem && <Notice problem={problem} />}
        {action.what === "delete" ? (
          <p className="files-question">
            Delete <code className="path">{action.path}</code>? You can undo this in History.
          </p>
        ) : (
          <label>
            Path in the workspace
            <input
              required
              autoFocus
              value={name}
              onChange={(event) => setName(event.target.value)}
              spellCheck={false}
              autoCapitalize="off"
            />
          </label>
        )}
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary" disabled={busy} autoFocus={action.what === "delete"}>
            {action.what === "delete" ? "Delete" : action.what === "rename" ? "Rename" : "Create"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
