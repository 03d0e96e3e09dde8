import { type ChangeEvent, type DragEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { LANGUAGE } from "../../language/translation";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { filePath, useGo, useRoute } from "../../ui/route";
import { useToasts } from "../../ui/Toasts";
import { moveDraft, useDrafts } from "./drafts";
import { type FileAction, FileDialog } from "./FileDialog";
import { FileTabs } from "./FileTabs";
import { FileView } from "./FileView";
import { neighbourOf, readTabs, withRenamed, withTab } from "./openTabs.logic";
import { TextSearch } from "./TextSearch";
import { TreeList } from "./TreeList";
import { type FileKind, folderOf } from "./tree.logic";
import { UploadPanel } from "./UploadPanel";
import { type DroppedEntry, readDropped, uploadsOf } from "./uploads.logic";
import { useTree } from "./useTree";
import { useUploads } from "./useUploads";
import "./files.css";

const TABS_KEY = "freehold.files.tabs";
const SHOW_IGNORED_KEY = "freehold.files.all";

/** The files of the workspace, and one of them open. */
export default function FilesPage() {
  const { query } = useRoute();
  const go = useGo();
  const path = query.get("path");
  const line = Number(query.get("line")) || null;
  const [all, setAll] = useState(() => localStorage.getItem(SHOW_IGNORED_KEY) !== null);
  const { tree, version, complete, problem, highlighted, changes, load, relist, listMore } = useTree(path, all);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(path === null ? [] : foldersOf(path)));
  const [typed, setTyped] = useState("");
  const [inText, setInText] = useState(false);
  const [action, setAction] = useState<FileAction | null>(null);
  const [dropping, setDropping] = useState<string | null>(null);
  const drafts = useDrafts();
  const { tabs, setTabs } = useOpenTabs(path);
  const toasts = useToasts();
  const picker = useRef<HTMLInputElement>(null);
  const folderPicker = useRef<HTMLInputElement>(null);
  const onUploaded = useCallback(
    (count: number) => {
      toasts.done(count === 1 ? "1 file uploaded" : `${count.toLocaleString(LANGUAGE)} files uploaded`);
      relist();
    },
    [toasts, relist],
  );
  const uploads = useUploads(onUploaded);

  const searching = inText && typed.trim() !== "";
  // biome-ignore lint/correctness/useExhaustiveDependencies: the tree is changed in place, and its version grows
  const rows = useMemo(
    () => (tree === null ? [] : typed.trim() === "" || inText ? tree.visibleRows(open) : tree.search(typed.trim())),
    [tree, version, open, typed, inText],
  );

  function choose(chosen: string, kind: FileKind) {
    if (kind === "folder") {
      listMore(chosen);
      setTyped("");
      setOpen((held) => {
        const next = new Set(held);
        if (typed.trim() !== "") for (const above of foldersOf(`${chosen}/x`)) next.add(above);
        else if (!next.delete(chosen)) next.add(chosen);
        return next;
      });
    } else go(filePath(chosen));
  }

  const folder = path === null ? "" : folderOf(path);

  function upload(event: ChangeEvent<HTMLInputElement>) {
    uploads.send(uploadsOf(event.target.files ?? [], folder));
    event.target.value = "";
  }
  function onDragOver(event: DragEvent) {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    setDropping(folderUnder(event.target));
  }
  function onDrop(event: DragEvent) {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    setDropping(null);
    const into = folderUnder(event.target);
    // The items are invalid when this function ends. Their entries are not.
    const entries = [...event.dataTransfer.items].flatMap(
      (item) => (item.webkitGetAsEntry() as DroppedEntry | null) ?? [],
    );
    const plain = uploadsOf(event.dataTransfer.files, into);
    if (entries.length === 0) uploads.send(plain);
    else
      void readDropped(entries, into).then(uploads.send, (error: unknown) =>
        toasts.refused(error instanceof Error ? error.message : "The dropped files could not be read"),
      );
  }
  function showAll(on: boolean) {
    if (on) localStorage.setItem(SHOW_IGNORED_KEY, "1");
    else localStorage.removeItem(SHOW_IGNORED_KEY);
    setAll(on);
  }

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: files can be dropped anywhere on the page, and uploaded with a button
    <div
      className="split files"
      data-open={path !== null || undefined}
      data-dropping={dropping !== null || undefined}
      onDragOver={onDragOver}
      onDragLeave={(event) => event.currentTarget.contains(event.relatedTarget as Node | null) || setDropping(null)}
      onDrop={onDrop}
    >
      <aside className="split-list" aria-label="Files">
        <div className="split-head">
          <h1>Files</h1>
          <button
            className="plain-button"
            title="New file"
            aria-label="New file"
            onClick={() => setAction({ what: "file", in: folder })}
          >
            <Icon name="plus" />
          </button>
          <button
            className="plain-button"
            title="New folder"
            aria-label="New folder"
            onClick={() => setAction({ what: "folder", in: folder })}
          >
            <Icon name="folder" />
          </button>
          <button
            className="plain-button"
            title="Upload files"
            aria-label="Upload files"
            onClick={() => picker.current?.click()}
          >
            <Icon name="upload" />
          </button>
          <input ref={picker} type="file" multiple hidden aria-label="Files to upload" onChange={upload} />
          <input
            ref={folderPicker}
            type="file"
            hidden
            aria-label="Folder to upload"
            {...{ webkitdirectory: "" }}
            onChange={upload}
          />
        </div>
        <div className="files-find">
          <input
            className="split-search"
            type="search"
            placeholder={inText ? "Find in files" : "Find by name"}
            aria-label={inText ? "Find in files" : "Find by name"}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
          <div className="tabs" role="group" aria-label="Search in">
            <button aria-pressed={!inText} onClick={() => setInText(false)}>
              Names
            </button>
            <button aria-pressed={inText} onClick={() => setInText(true)}>
              Text
            </button>
          </div>
        </div>
        {problem && <Notice problem={problem} action={{ label: "Try again", run: load }} />}
        {tree === null && problem === null && <p className="quiet split-note">Loading…</p>}
        {searching && <TextSearch typed={typed} all={all} onOpen={(found, at) => go(filePath(found, at))} />}
        {!searching && tree !== null && rows.length === 0 && (
          <p className="empty split-note">
            {typed && !inText ? "No file matches." : "The workspace is empty. Create a file, or drop files here."}
          </p>
        )}
        {!searching && (
          <TreeList
            rows={rows}
            chosen={path}
            highlighted={highlighted}
            unsaved={drafts}
            onChoose={choose}
            onEndOf={listMore}
          />
        )}
        {!complete && (
          <p className="quiet split-note">
            There are many files. A folder shows more of them when you scroll to its end.
          </p>
        )}
        <UploadPanel uploads={uploads} />
        <div className="files-foot">
          <label className="radio">
            <input type="checkbox" checked={all} onChange={(event) => showAll(event.target.checked)} />
            Show ignored files
          </label>
          <button className="text-button" onClick={() => folderPicker.current?.click()}>
            Upload a folder
          </button>
        </div>
        {dropping !== null && (
          <p className="files-drop-hint" role="status">
            Drop to upload to <code>{dropping === "" ? "the workspace" : dropping}</code>
          </p>
        )}
      </aside>
      <h1 className="visually-hidden split-title">Files</h1>
      {path === null ? (
        <div className="split-empty">
          <p className="quiet">Choose a file, or drop files here to upload them.</p>
        </div>
      ) : (
        <div className="files-open">
          {tabs.length > 1 && (
            <FileTabs
              tabs={tabs}
              chosen={path}
              unsaved={drafts}
              onChoose={(one) => go(filePath(one))}
              onClose={(one) => {
                setTabs(withRenamed(tabs, one, null));
                const next = neighbourOf(tabs, one);
                if (one === path) go(next === null ? "/files" : filePath(next));
              }}
            />
          )}
          <FileView
            key={path}
            path={path}
            line={line}
            changes={changes}
            onClose={() => go("/files")}
            onRename={() => setAction({ what: "rename", path })}
            onDelete={() => setAction({ what: "delete", path })}
          />
        </div>
      )}
      {action && (
        <FileDialog
          action={action}
          onClose={() => setAction(null)}
          onDone={(now) => {
            setAction(null);
            relist();
            if ("path" in action) {
              moveDraft(action.path, now);
              setTabs(withRenamed(tabs, action.path, now));
            }
            if (action.what === "folder") setOpen((held) => new Set([...held, ...foldersOf(`${now}/x`)]));
            else go(now === null ? "/files" : filePath(now));
          }}
        />
      )}
    </div>
  );
}

/** The files that are open, also after a reload. The one at `path` is always among them. */
function useOpenTabs(path: string | null) {
  const [stored, setStored] = useState(() => readTabs(sessionStorage.getItem(TABS_KEY)));
  const tabs = path === null ? stored : withTab(stored, path);
  const setTabs = useCallback((next: readonly string[]) => {
    sessionStorage.setItem(TABS_KEY, JSON.stringify(next));
    setStored(next);
  }, []);
  useEffect(() => {
    if (tabs !== stored) setTabs(tabs);
  }, [tabs, stored, setTabs]);
  return { tabs, setTabs };
}

function foldersOf(path: string): string[] {
  const parts = path.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

/** The folder into which files that are dropped here go. */
function folderUnder(target: EventTarget): string {
  const row = target instanceof Element ? target.closest<HTMLElement>("[data-path]") : null;
  const path = row?.dataset["path"] ?? "";
  return row?.dataset["kind"] === "folder" ? path : folderOf(path);
}
