import { useCallback, useMemo, useRef, useState, type ChangeEvent, type DragEvent } from "react";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { go, useRoute } from "../shell/route";
import { moveDraft, useDrafts } from "./drafts";
import { FileDialog, type Asked } from "./FileDialog";
import { FileView } from "./FileView";
import { TextSearch } from "./TextSearch";
import { folderOf, type Kind } from "./tree.logic";
import { TreeList } from "./TreeList";
import { UploadPanel } from "./UploadPanel";
import { useUploads } from "./uploads";
import { filesIn, wantedOf, type Dropped } from "./uploads.logic";
import { useTree } from "./useTree";
import "./files.css";

const ALL = "freehold.files.all";

export default function FilesPage() {
  const { query } = useRoute();
  const path = query.get("path");
  const line = Number(query.get("line")) || null;
  const [all, setAll] = useState(() => localStorage.getItem(ALL) !== null);
  const { tree, version, complete, problem, flashed, changes, load, relist } = useTree(path, all);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(path === null ? [] : foldersOf(path)));
  const [typed, setTyped] = useState("");
  const [inText, setInText] = useState(false);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [dropping, setDropping] = useState<string | null>(null);
  const drafts = useDrafts();
  const toasts = useToasts();
  const picker = useRef<HTMLInputElement>(null);
  const folderPicker = useRef<HTMLInputElement>(null);
  const arrived = useCallback(
    (count: number) => {
      toasts.done(count === 1 ? "Uploaded" : `${count.toLocaleString()} files uploaded`);
      relist();
    },
    [toasts, relist],
  );
  const uploads = useUploads(arrived);

  const searching = inText && typed.trim() !== "";
  const rows = useMemo(
    () => (tree === null ? [] : typed.trim() === "" || inText ? tree.shown(open) : tree.named(typed.trim())),
    // The tree is changed in place: its version says when.
    [tree, version, open, typed, inText],
  );

  function choose(chosen: string, kind: Kind) {
    if (kind === "folder") {
      setTyped("");
      setOpen((held) => {
        const next = new Set(held);
        if (typed.trim() !== "") for (const above of foldersOf(`${chosen}/x`)) next.add(above);
        else if (!next.delete(chosen)) next.add(chosen);
        return next;
      });
    } else go(`/files?path=${encodeURIComponent(chosen)}`);
  }

  const folder = path === null ? "" : folderOf(path);

  function pick(event: ChangeEvent<HTMLInputElement>) {
    uploads.send(wantedOf(event.target.files ?? [], folder));
    event.target.value = "";
  }
  function over(event: DragEvent) {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    setDropping(folderUnder(event.target));
  }
  function drop(event: DragEvent) {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    setDropping(null);
    const into = folderUnder(event.target);
    // The items are gone when this function ends; their entries are not.
    const entries = [...event.dataTransfer.items].flatMap((item) => (item.webkitGetAsEntry() as Dropped | null) ?? []);
    const plain = wantedOf(event.dataTransfer.files, into);
    if (entries.length === 0) uploads.send(plain);
    else void filesIn(entries, into).then((found) => uploads.send(found), toasts.failed);
  }
  function showAll(on: boolean) {
    if (on) localStorage.setItem(ALL, "1");
    else localStorage.removeItem(ALL);
    setAll(on);
  }

  return (
    <div
      className="files"
      data-open={path !== null || undefined}
      data-dropping={dropping !== null || undefined}
      onDragOver={over}
      onDragLeave={(event) => event.currentTarget.contains(event.relatedTarget as Node | null) || setDropping(null)}
      onDrop={drop}
    >
      <aside className="tree-pane" aria-label="Files">
        <div className="tree-head">
          <h1>Files</h1>
          <button className="plain-button" title="New file" aria-label="New file" onClick={() => setAsked({ what: "file", in: folder })}>
            <Icon name="plus" />
          </button>
          <button className="plain-button" title="New folder" aria-label="New folder" onClick={() => setAsked({ what: "folder", in: folder })}>
            <Icon name="folder" />
          </button>
          <button className="plain-button" title="Upload files" aria-label="Upload files" onClick={() => picker.current?.click()}>
            <Icon name="upload" />
          </button>
          <input ref={picker} type="file" multiple hidden aria-label="Files to upload" onChange={pick} />
          <input ref={folderPicker} type="file" hidden aria-label="Folder to upload" {...{ webkitdirectory: "" }} onChange={pick} />
        </div>
        <div className="tree-find">
          <input
            className="tree-search"
            type="search"
            placeholder={inText ? "Find in files" : "Find by name"}
            aria-label={inText ? "Find in files" : "Find by name"}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
          <div className="tabs" role="group" aria-label="Where to look">
            <button aria-pressed={!inText} onClick={() => setInText(false)}>
              Names
            </button>
            <button aria-pressed={inText} onClick={() => setInText(true)}>
              Text
            </button>
          </div>
        </div>
        {problem && <Notice problem={problem} action={{ label: "Try again", run: load }} />}
        {tree === null && problem === null && <p className="quiet tree-note">Reading…</p>}
        {searching && <TextSearch typed={typed} all={all} onOpen={(found, at) => go(`/files?path=${encodeURIComponent(found)}&line=${at}`)} />}
        {!searching && tree !== null && rows.length === 0 && (
          <p className="empty tree-note">{typed && !inText ? "No file is called that." : "The workspace is empty. Make a file, or drop some here."}</p>
        )}
        {!searching && <TreeList rows={rows} chosen={path} flashed={flashed} unsaved={drafts} onChoose={choose} />}
        {!complete && <p className="quiet tree-note">Not everything is shown: there are too many files.</p>}
        <UploadPanel uploads={uploads} />
        <div className="tree-foot">
          <label className="radio">
            <input type="checkbox" checked={all} onChange={(event) => showAll(event.target.checked)} />
            Show ignored
          </label>
          <button className="text-button" onClick={() => folderPicker.current?.click()}>
            Upload a folder
          </button>
        </div>
        {dropping !== null && (
          <p className="drop-words" role="status">
            Drop to upload to <code>{dropping === "" ? "the workspace" : dropping}</code>
          </p>
        )}
      </aside>
      {path === null ? (
        <div className="file-none">
          <p className="quiet">Choose a file to see it, or drop files here.</p>
        </div>
      ) : (
        <FileView
          key={path}
          path={path}
          line={line}
          changes={changes}
          onClose={() => go("/files")}
          onRename={() => setAsked({ what: "rename", path })}
          onDelete={() => setAsked({ what: "delete", path })}
        />
      )}
      {asked && (
        <FileDialog
          asked={asked}
          onClose={() => setAsked(null)}
          onDone={(now) => {
            setAsked(null);
            relist();
            if ("path" in asked) moveDraft(asked.path, now);
            if (asked.what === "folder") setOpen((held) => new Set([...held, ...foldersOf(`${now}/x`)]));
            else go(now === null ? "/files" : `/files?path=${encodeURIComponent(now)}`);
          }}
        />
      )}
    </div>
  );
}

function foldersOf(path: string): string[] {
  const parts = path.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

/** The folder that something dropped there goes into. */
function folderUnder(target: EventTarget): string {
  const row = target instanceof Element ? target.closest<HTMLElement>("[data-path]") : null;
  const path = row?.dataset["path"] ?? "";
  return row?.dataset["kind"] === "folder" ? path : folderOf(path);
}
