import { type FormEvent, useState } from "react";
import type { SessionInfo } from "../../../client/api";
import { downloadAs, request } from "../../../client/http";
import { Dialog } from "../../../ui/Dialog";
import { ActionMenu } from "../../../ui/Menu";
import { go, sessionPath } from "../../../ui/route";
import { useToasts } from "../../../ui/Toasts";
import { useSessionList } from "../../session-list/SessionListProvider";
import { sessionTitle } from "../../session-list/sessionList.logic";
import { removeDraft } from "../composer/draft";

const apiPath = (session: SessionInfo) => `/v1/sessions/${encodeURIComponent(session.id)}`;

/** The actions of a session. */
export function SessionMenu({ session, className }: { session: SessionInfo; className?: string }) {
  const [open, setOpen] = useState<"rename" | "delete" | null>(null);
  const toasts = useToasts();
  const sessionList = useSessionList();

  async function change(body: { title?: string; archived?: boolean }, message?: string) {
    try {
      sessionList.receive(await request<SessionInfo>(apiPath(session), { method: "PATCH", body }));
      if (message) toasts.done(message);
    } catch (error) {
      toasts.failed(error);
    }
  }

  async function fork() {
    try {
      const copy = await request<SessionInfo>(`${apiPath(session)}/fork`, { method: "POST", body: {} });
      sessionList.receive(copy);
      go(sessionPath(copy.id));
    } catch (error) {
      toasts.failed(error);
    }
  }

  function download(format: "markdown" | "json") {
    downloadAs(`${apiPath(session)}/export?format=${format}`, "").catch(toasts.failed);
  }

  return (
    <>
      <ActionMenu
        label={`Menu of ${sessionTitle(session)}`}
        {...(className === undefined ? {} : { className })}
        entries={[
          { label: "Rename…", icon: "talk", run: () => setOpen("rename") },
          { label: "Fork", icon: "redo", run: () => void fork() },
          { label: "Export as Markdown", icon: "download", run: () => download("markdown") },
          { label: "Export as JSON", icon: "download", run: () => download("json") },
          session.archived
            ? {
                label: "Move out of the archive",
                icon: "folder",
                separated: true,
                run: () => void change({ archived: false }, "Moved out of the archive"),
              }
            : {
                label: "Archive",
                icon: "folder",
                separated: true,
                run: () => void change({ archived: true }, "Archived"),
              },
          { label: "Delete…", icon: "close", danger: true, run: () => setOpen("delete") },
        ]}
      />
      {open === "rename" && (
        <RenameDialog session={session} onRename={(title) => change({ title })} onClose={() => setOpen(null)} />
      )}
      {open === "delete" && <DeleteDialog session={session} onClose={() => setOpen(null)} />}
    </>
  );
}

function RenameDialog({
  session,
  onRename,
  onClose,
}: {
  session: SessionInfo;
  onRename: (title: string) => Promise<void>;
  onClose: () => void;
}) {
  const [title, setTitle] = useState(session.title);
  async function submit(event: FormEvent) {
    event.preventDefault();
    await onRename(title.trim());
    onClose();
  }
  return (
    <Dialog title="Rename this session" onClose={onClose}>
      <form className="stack" onSubmit={(event) => void submit(event)}>
        <input
          aria-label="Title"
          value={title}
          maxLength={200}
          required
          autoFocus
          onFocus={(event) => event.target.select()}
          onChange={(event) => setTitle(event.target.value)}
        />
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary" disabled={title.trim() === ""}>
            Rename
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function DeleteDialog({ session, onClose }: { session: SessionInfo; onClose: () => void }) {
  const [busy, setBusy] = useState(false);
  const toasts = useToasts();
  const sessionList = useSessionList();
  async function remove() {
    setBusy(true);
    try {
      await request(apiPath(session), { method: "DELETE" });
      removeDraft(session.id);
      sessionList.receive({ id: session.id, deleted: true });
      if (new URLSearchParams(location.search).get("id") === session.id) go("/sessions");
      onClose();
    } catch (error) {
      toasts.failed(error);
      setBusy(false);
    }
  }
  return (
    <Dialog title="Delete this session?" onClose={onClose}>
      <p>
        This deletes all messages of <strong>{sessionTitle(session)}</strong> for good and stops its agent. The files
        that it changed stay, and so does their history.
      </p>
      <div className="dialog-foot">
        <button onClick={onClose} autoFocus>
          Cancel
        </button>
        <button className="danger" disabled={busy} onClick={() => void remove()}>
          Delete
        </button>
      </div>
    </Dialog>
  );
}
