import { useState, type FormEvent } from "react";
import { problemOf, type Problem } from "../../client/http";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { makeFile, makeFolder, moveFile, removeFile } from "./requests";

export type Asked = { what: "file" | "folder"; in: string } | { what: "rename" | "delete"; path: string };

const TITLES = { file: "New file", folder: "New folder", rename: "Rename or move", delete: "Delete" } as const;

/** Asks what is needed to make, move or remove something, and does it; `onDone` gets the path it now has. */
export function FileDialog({ asked, onClose, onDone }: { asked: Asked; onClose: () => void; onDone: (path: string | null) => void }) {
  const [name, setName] = useState("path" in asked ? asked.path : asked.in === "" ? "" : `${asked.in}/`);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);

  async function act(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    const path = name.trim();
    try {
      if (asked.what === "file") await makeFile(path);
      if (asked.what === "folder") await makeFolder(path);
      if (asked.what === "rename") await moveFile(asked.path, path);
      if (asked.what === "delete") await removeFile(asked.path);
      onDone(asked.what === "delete" ? null : path);
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  }

  return (
    <Dialog title={TITLES[asked.what]} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void act(event)}>
        {problem && <Notice problem={problem} />}
        {asked.what === "delete" ? (
          <p className="file-question">
            Delete <code className="path">{asked.path}</code>? History keeps it: undo brings it back.
          </p>
        ) : (
          <label>
            Path in the workspace
            <input required autoFocus value={name} onChange={(event) => setName(event.target.value)} spellCheck={false} autoCapitalize="off" />
          </label>
        )}
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary" disabled={busy} autoFocus={asked.what === "delete"}>
            {asked.what === "delete" ? "Delete" : asked.what === "rename" ? "Rename" : "Make"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
