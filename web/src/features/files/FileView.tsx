import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";
import type { FileRow, Written } from "../../client/api";
import { download, problemOf, request, RequestFailed, upload, type Problem } from "../../client/http";
import { Icon } from "../../ui/Icon";
import { bytes as sizeWords } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { afterChange, readContent, type Content } from "./content.logic";
import { contentPath, saveAs } from "./requests";

const CodeEditor = lazy(() => import("./CodeEditor"));

interface Opened {
  content: Content;
  bytes: Uint8Array<ArrayBuffer>;
  etag: string;
}

interface FileViewProps {
  path: string;
  /** Grows each time the file is seen to change on disk. */
  changes: number;
  onClose: () => void;
  onRename: () => void;
  onDelete: () => void;
}

/** One file: its text to edit, its picture to see, or the way to download it. */
export function FileView({ path, changes, onClose, onRename, onDelete }: FileViewProps) {
  const [opened, setOpened] = useState<Opened | null>(null);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [conflict, setConflict] = useState(false);
  const [saving, setSaving] = useState(false);
  const toasts = useToasts();
  const saved = opened?.content.kind === "text" ? opened.content.text : null;
  const dirty = saved !== null && text !== saved;
  const state = useRef({ opened, dirty, text, saving });
  useEffect(() => {
    state.current = { opened, dirty, text, saving };
  });

  const load = useCallback(async () => {
    try {
      const found = await download(contentPath(path));
      const content = readContent(path, found.bytes);
      setOpened({ content, ...found });
      setText(content.kind === "text" ? content.text : "");
      setProblem(null);
      setConflict(false);
    } catch (error) {
      setProblem(problemOf(error));
    }
  }, [path]);
  useEffect(() => void load(), [load]);

  useEffect(() => {
    if (changes === 0) return;
    let current = true;
    request<FileRow>(`/v1/files/stat?path=${encodeURIComponent(path)}`)
      .then((row) => {
        const held = state.current;
        if (!current || held.opened === null || held.saving) return;
        const then = afterChange(held.opened.etag, row.etag, held.dirty);
        if (then === "reload") void load();
        if (then === "conflict") setConflict(true);
      })
      .catch((error: unknown) => {
        if (current && error instanceof RequestFailed && error.status === 404 && !state.current.dirty) setProblem(error.problem);
      });
    return () => {
      current = false;
    };
  }, [changes, path, load]);

  const save = useCallback(
    async (how: { overwrite?: boolean } = {}) => {
      const held = state.current;
      if (held.opened === null || held.saving || (!held.dirty && !how.overwrite)) return;
      setSaving(true);
      const body = new TextEncoder().encode(held.text);
      try {
        const condition: Record<string, string> = how.overwrite ? {} : { "if-match": held.opened.etag };
        const written = await upload<Written>(contentPath(path), body, condition);
        setOpened({ content: { kind: "text", text: held.text }, bytes: body, etag: written.etag });
        setConflict(false);
        setProblem(null);
      } catch (error) {
        if (error instanceof RequestFailed && error.problem.code === "files.conflict") setConflict(true);
        else toasts.failed(error);
      }
      setSaving(false);
    },
    [path, toasts],
  );

  return (
    <section className="file" aria-label={path}>
      <header className="file-head">
        <button className="plain-button back" onClick={onClose} aria-label="Back to the files">
          <Icon name="back" />
        </button>
        <h2 className="path" title={path}>
          {path}
        </h2>
        {dirty && <span className="chip" data-tone="amber">not saved</span>}
        <div className="file-actions">
          {opened?.content.kind === "text" && (
            <button className="small primary" disabled={!dirty || saving} onClick={() => void save()}>
              {saving ? "Saving…" : "Save"}
            </button>
          )}
          <button className="plain-button" title="Download" aria-label="Download" onClick={() => void saveAs(path).catch(toasts.failed)}>
            <Icon name="download" />
          </button>
          <button className="small" onClick={onRename}>
            Rename
          </button>
          <button className="small danger" onClick={onDelete}>
            Delete
          </button>
        </div>
      </header>
      {conflict && (
        <div className="bar" data-tone="amber" role="alert">
          <p>
            <strong>This file changed on disk while you were editing it.</strong>
          </p>
          <div className="replies">
            <button className="small" onClick={() => void load()}>
              Take theirs
            </button>
            <button className="small" onClick={() => void save({ overwrite: true })}>
              Keep mine
            </button>
          </div>
        </div>
      )}
      {problem && (
        <div className="file-note">
          <Notice problem={problem} action={{ label: "Try again", run: () => void load() }} />
        </div>
      )}
      {opened && problem === null && (
        <div className="file-body">
          {opened.content.kind === "text" && (
            <Suspense fallback={<p className="loading quiet">Opening the editor…</p>}>
              <CodeEditor path={path} text={text} onChange={setText} onSave={() => void save()} />
            </Suspense>
          )}
          {opened.content.kind === "image" && <Picture bytes={opened.bytes} mime={opened.content.mime} name={path} />}
          {(opened.content.kind === "binary" || opened.content.kind === "large") && (
            <p className="empty file-note">
              {opened.content.kind === "binary" ? "This is not text" : "This file is too large to edit here"} ({sizeWords(opened.bytes.length)}). Download it to look
              inside.
            </p>
          )}
        </div>
      )}
    </section>
  );
}

function Picture({ bytes, mime, name }: { bytes: Uint8Array<ArrayBuffer>; mime: string; name: string }) {
  const [address, setAddress] = useState<string | null>(null);
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type: mime }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, mime]);
  return <div className="picture">{address && <img src={address} alt={name} />}</div>;
}
