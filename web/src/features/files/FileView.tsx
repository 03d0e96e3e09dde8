import { useCallback, useEffect, useRef, useState } from "react";
import type { FileEntry, WrittenFile } from "../../client/api";
import { download, type Problem, problemOf, RequestFailed, request, upload } from "../../client/http";
import { ErrorBoundary } from "../../ui/ErrorBoundary";
import { formatBytes } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { lazyComponent } from "../../ui/lazyComponent";
import { Notice } from "../../ui/Notice";
import { PlainText } from "../../ui/PlainText";
import { PlainTextBoundary } from "../../ui/PlainTextBoundary";
import { go } from "../../ui/route";
import { useToasts } from "../../ui/Toasts";
import { type Content, MAX_SHOWN, reactionToChange, readContent } from "./content.logic";
import { draftOf, setDraft } from "./drafts";
import { contentPath, downloadFile } from "./fileRequests";

const CodeEditor = lazyComponent(() => import("./CodeEditor"));
const Markdown = lazyComponent(async () => ({ default: (await import("../markdown/Markdown")).Markdown }));
const FileComparison = lazyComponent(() => import("./FileComparison"));
const Pdf = lazyComponent(() => import("./Pdf"));

interface OpenFile {
  content: Content;
  bytes: Uint8Array<ArrayBuffer>;
  etag: string;
  size: number;
}

interface FileViewProps {
  path: string;
  line: number | null;
  /** Grows each time the file changes on disk. */
  changes: number;
  onClose: () => void;
  onRename: () => void;
  onDelete: () => void;
}

/** One file: an editor for text, a view of images and PDFs, or a download. */
export function FileView({ path, line, changes, onClose, onRename, onDelete }: FileViewProps) {
  const [opened, setOpened] = useState<OpenFile | null>(null);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [conflict, setConflict] = useState(false);
  const [saving, setSaving] = useState(false);
  const [isPreview, setPreview] = useState(false);
  /** The version on disk, while it is compared with what was typed. */
  const [onDisk, setOnDisk] = useState<string | null>(null);
  const toasts = useToasts();
  const saved = opened?.content.kind === "text" ? opened.content.text : null;
  const dirty = saved !== null && text !== saved;
  const state = useRef({ opened, dirty, text, saving });
  useEffect(() => {
    state.current = { opened, dirty, text, saving };
  });

  const load = useCallback(async () => {
    try {
      const { size, etag } = await request<FileEntry>(`/v1/files/stat?path=${encodeURIComponent(path)}`);
      const found = size > MAX_SHOWN ? { bytes: new Uint8Array(), etag } : await download(contentPath(path));
      const content: Content = size > MAX_SHOWN ? { kind: "large" } : readContent(path, found.bytes);
      const draft = content.kind === "text" ? draftOf(path) : undefined;
      setOpened({ content, size, ...found });
      setText(draft?.text ?? (content.kind === "text" ? content.text : ""));
      setProblem(null);
      setConflict(draft !== undefined && draft.etag !== found.etag);
      setOnDisk(null);
    } catch (error) {
      setProblem(problemOf(error));
    }
  }, [path]);
  useEffect(() => void load(), [load]);
  const version = opened?.etag;
  useEffect(() => {
    if (version !== undefined)
      setDraft(path, dirty ? { text, etag: conflict ? (draftOf(path)?.etag ?? version) : version } : null);
  }, [path, dirty, text, version, conflict]);

  useEffect(() => {
    if (changes === 0) return;
    let current = true;
    request<FileEntry>(`/v1/files/stat?path=${encodeURIComponent(path)}`)
      .then((row) => {
        const held = state.current;
        if (!current || held.opened === null || held.saving) return;
        const then = reactionToChange(held.opened.etag, row.etag, held.dirty);
        if (then === "reload") void load();
        if (then === "conflict") setConflict(true);
      })
      .catch((error: unknown) => {
        if (current && error instanceof RequestFailed && error.status === 404 && !state.current.dirty)
          setProblem(error.problem);
      });
    return () => {
      current = false;
    };
  }, [changes, path, load]);

  const save = useCallback(
    async (how: { overwrite?: boolean; typed?: string } = {}) => {
      const held = state.current;
      const text = how.typed ?? held.text;
      const isSaved = held.opened?.content.kind === "text" && held.opened.content.text === text;
      if (held.opened === null || held.saving || (isSaved && !how.overwrite)) return;
      setSaving(true);
      const body = new TextEncoder().encode(text);
      try {
        const condition: Record<string, string> = how.overwrite ? {} : { "if-match": held.opened.etag };
        const written = await upload<WrittenFile>(contentPath(path), body, condition);
        setOpened({ content: { kind: "text", text }, bytes: body, etag: written.etag, size: body.length });
        setConflict(false);
        setOnDisk(null);
        setProblem(null);
      } catch (error) {
        if (error instanceof RequestFailed && error.problem.code === "files.conflict") setConflict(true);
        else toasts.failed(error);
      }
      setSaving(false);
    },
    [path, toasts],
  );

  async function compare() {
    try {
      const found = readContent(path, (await download(contentPath(path))).bytes);
      setOnDisk(found.kind === "text" ? found.text : "");
    } catch (error) {
      toasts.failed(error);
    }
  }
  const canPreview = opened?.content.kind === "text" && /\.(md|markdown)$/i.test(path);

  return (
    <section className="split-detail" aria-label={path}>
      <header className="split-detail-head">
        <button className="plain-button split-back" onClick={onClose} aria-label="Back to the files">
          <Icon name="back" />
        </button>
        <h2 className="path" title={path}>
          {path}
        </h2>
        {dirty && (
          <span className="chip" data-tone="amber">
            not saved
          </span>
        )}
        <div className="files-actions">
          {canPreview && (
            <button className="small" aria-pressed={isPreview} onClick={() => setPreview(!isPreview)}>
              {isPreview ? "Edit" : "Preview"}
            </button>
          )}
          {opened?.content.kind === "text" && (
            <button className="small primary" disabled={!dirty || saving} onClick={() => void save()}>
              {saving ? "Saving…" : "Save"}
            </button>
          )}
          <button
            className="plain-button"
            title="Download"
            aria-label="Download"
            onClick={() => void downloadFile(path).catch(toasts.failed)}
          >
            <Icon name="download" />
          </button>
          <button className="small" onClick={() => go(`/history?path=${encodeURIComponent(`workspace/${path}`)}`)}>
            History
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
          <div className="answers">
            {onDisk === null ? (
              <button className="small" onClick={() => void compare()}>
                Compare
              </button>
            ) : (
              <button className="small" onClick={() => setOnDisk(null)}>
                Back to editing
              </button>
            )}
            <button
              className="small"
              onClick={() => {
                setDraft(path, null);
                void load();
              }}
            >
              Load the new version
            </button>
            <button className="small" onClick={() => void save({ overwrite: true })}>
              Keep my version
            </button>
          </div>
        </div>
      )}
      {problem && (
        <div className="files-note">
          <Notice problem={problem} action={{ label: "Try again", run: () => void load() }} />
        </div>
      )}
      {opened && problem === null && (
        <div className="files-body">
          {opened.content.kind === "text" && onDisk !== null && (
            <FileComparison path={path} onDisk={onDisk} typed={text} />
          )}
          {opened.content.kind === "text" && onDisk === null && isPreview && canPreview && (
            <div className="files-markdown">
              <PlainTextBoundary text={text}>
                <Markdown text={text} live={false} />
              </PlainTextBoundary>
            </div>
          )}
          {opened.content.kind === "text" && onDisk === null && !(isPreview && canPreview) && (
            <PlainTextBoundary text={opened.content.text}>
              <CodeEditor
                path={path}
                text={text}
                line={line}
                onChange={setText}
                onSave={(typed) => void save({ typed })}
              />
            </PlainTextBoundary>
          )}
          {opened.content.kind === "long-lines" && (
            <div className="files-note">
              <PlainText
                text={opened.content.text}
                note="This file has lines that are too long to edit here. Download it to change it."
                label={`Contents of ${path}`}
              />
            </div>
          )}
          {opened.content.kind === "image" && <ImageView bytes={opened.bytes} mime={opened.content.mime} name={path} />}
          {opened.content.kind === "pdf" && (
            <ErrorBoundary name="This PDF file">
              <Pdf bytes={opened.bytes} name={path} />
            </ErrorBoundary>
          )}
          {(opened.content.kind === "binary" || opened.content.kind === "large") && (
            <p className="empty files-note">
              {opened.content.kind === "binary" ? "This is not a text file" : "This file is too large to edit here"} (
              {formatBytes(opened.size)}). Download it to open it.
            </p>
          )}
        </div>
      )}
    </section>
  );
}

function ImageView({ bytes, mime, name }: { bytes: Uint8Array<ArrayBuffer>; mime: string; name: string }) {
  const [address, setAddress] = useState<string | null>(null);
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type: mime }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, mime]);
  return <div className="files-image">{address && <img src={address} alt={name} />}</div>;
}
