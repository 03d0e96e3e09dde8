import { useState, type FormEvent } from "react";
import type { SessionView } from "../../../client/api";
import { request } from "../../../client/http";
import { Dialog } from "../../../ui/Dialog";
import { ActionMenu } from "../../../ui/Menu";
import { useToasts } from "../../../ui/Toasts";
import { unhidden } from "../../../ui/unhidden";
import { go } from "../../shell/route";
import { forgetDraft } from "../composer/draft";
import { useRoster } from "../roster";

const addressOf = (session: SessionView) => `/v1/sessions/${encodeURIComponent(session.id)}`;

/** What can be done with a session. */
export function SessionMenu({ session, className }: { session: SessionView; className?: string }) {
  const [open, setOpen] = useState<"rename" | "delete" | null>(null);
  const toasts = useToasts();
  const roster = useRoster();

  async function change(body: { title?: string; archived?: boolean }, said?: string) {
    try {
      roster.take(await request<SessionView>(addressOf(session), { method: "PATCH", body }));
      if (said) toasts.done(said);
    } catch (error) {
      toasts.failed(error);
    }
  }

  async function fork() {
    try {
      const made = await request<SessionView>(`${addressOf(session)}/fork`, { method: "POST", body: {} });
      roster.take(made);
      go(`/sessions?id=${encodeURIComponent(made.id)}`);
    } catch (error) {
      toasts.failed(error);
    }
  }

  function download(format: "markdown" | "json") {
    const link = document.createElement("a");
    link.href = `${addressOf(session)}/export?format=${format}`;
    link.download = "";
    link.click();
  }

  return (
    <>
      <ActionMenu
        label={`More for ${unhidden(session.title) || "New session"}`}
        {...(className === undefined ? {} : { className })}
        entries={[
          { label: "Rename…", icon: "talk", run: () => setOpen("rename") },
          { label: "Fork", icon: "redo", run: () => void fork() },
          { label: "Export as Markdown", icon: "download", run: () => download("markdown") },
          { label: "Export as JSON", icon: "download", run: () => download("json") },
          session.archived
            ? { label: "Take out of the archive", icon: "folder", apart: true, run: () => void change({ archived: false }, "Taken out of the archive") }
            : { label: "Archive", icon: "folder", apart: true, run: () => void change({ archived: true }, "Archived") },
          { label: "Delete…", icon: "close", danger: true, run: () => setOpen("delete") },
        ]}
      />
      {open === "rename" && <RenameDialog session={session} onRename={(title) => change({ title })} onClose={() => setOpen(null)} />}
      {open === "delete" && <DeleteDialog session={session} onClose={() => setOpen(null)} />}
    </>
  );
}

function RenameDialog({ session, onRename, onClose }: { session: SessionView; onRename: (title: string) => Promise<void>; onClose: () => void }) {
  const [title, setTitle] = useState(session.title);
  async function submit(event: FormEvent) {
    event.preventDefault();
    await onRename(title.trim());
    onClose();
  }
  return (
    <Dialog title="Rename the session" onClose={onClose}>
      <form className="stack" onSubmit={(event) => void submit(event)}>
        <input aria-label="Title" value={title} maxLength={200} required autoFocus onFocus={(event) => event.target.select()} onChange={(event) => setTitle(event.target.value)} />
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

function DeleteDialog({ session, onClose }: { session: SessionView; onClose: () => void }) {
  const [busy, setBusy] = useState(false);
  const toasts = useToasts();
  const roster = useRoster();
  async function remove() {
    setBusy(true);
    try {
      await request(addressOf(session), { method: "DELETE" });
      forgetDraft(session.id);
      roster.take({ id: session.id, deleted: true });
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
        What was said in <strong>{unhidden(session.title) || "New session"}</strong> is gone for good, and its agent is stopped if it works. The files it changed stay, and so does their history.
      </p>
      <div className="dialog-foot">
        <button onClick={onClose} autoFocus>
          Keep it
        </button>
        <button className="danger" disabled={busy} onClick={() => void remove()}>
          Delete
        </button>
      </div>
    </Dialog>
  );
}
