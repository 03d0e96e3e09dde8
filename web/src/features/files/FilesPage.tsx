import { useCallback, useEffect, useMemo, useRef, useState, type ChangeEvent } from "react";
import type { FileRow, FileTree } from "../../client/api";
import { problemOf, request, RequestFailed, type Problem } from "../../client/http";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { useToasts } from "../../ui/Toasts";
import { useTopic } from "../shell/live";
import { go, useRoute } from "../shell/route";
import { FileDialog, type Asked } from "./FileDialog";
import { FileView } from "./FileView";
import { putFile } from "./requests";
import { folderOf, inWorkspace, isSkipped, joined, Tree, type Kind } from "./tree.logic";
import { TreeList } from "./TreeList";
import "./files.css";

const FLASH = 1_600;
// More new paths than this at once are quicker listed anew than asked for one by one.
const MOST_ASKED = 30;
const RELIST_AFTER = 150;
// The list is asked for once changes are heard, so that none falls between; but not later than this.
const LIST_WITHOUT = 1_000;

interface Changes {
  relist?: boolean;
  items?: { path: string; word: "added" | "changed" | "removed" }[];
}

export default function FilesPage() {
  const { query } = useRoute();
  const path = query.get("path");
  const [tree, setTree] = useState<Tree | null>(null);
  const [version, setVersion] = useState(0);
  const [complete, setComplete] = useState(true);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(path === null ? [] : foldersOf(path)));
  const [typed, setTyped] = useState("");
  const [asked, setAsked] = useState<Asked | null>(null);
  const [flashed, setFlashed] = useState<ReadonlySet<string>>(new Set());
  const [changes, setChanges] = useState<Record<string, number>>({});
  const toasts = useToasts();
  const picker = useRef<HTMLInputElement>(null);
  const relisting = useRef(0);
  const asking = useRef<{ outdated: boolean } | null>(null);

  const relist = useCallback((after = RELIST_AFTER) => {
    clearTimeout(relisting.current);
    relisting.current = window.setTimeout(() => void load(), after);
  }, []);
  const load = useCallback(async () => {
    const mine = { outdated: false };
    asking.current = mine;
    try {
      const found = await request<FileTree>("/v1/files/tree");
      if (asking.current !== mine) return;
      setTree(new Tree(found.rows));
      setComplete(found.complete);
      setProblem(null);
    } catch (error) {
      if (asking.current === mine) setProblem(problemOf(error));
    }
    if (asking.current !== mine) return;
    asking.current = null;
    if (mine.outdated) relist();
  }, [relist]);
  useEffect(() => {
    relist(LIST_WITHOUT);
    return () => clearTimeout(relisting.current);
  }, [relist]);

  const flash = useCallback((paths: string[]) => {
    setFlashed((held) => new Set([...held, ...paths]));
    setTimeout(() => setFlashed((held) => new Set([...held].filter((one) => !paths.includes(one)))), FLASH);
  }, []);

  const apply = useCallback(
    async (data: Changes) => {
      const items = (data.items ?? []).flatMap((item) => {
        const inside = inWorkspace(item.path);
        return inside === null || isSkipped(inside) ? [] : [{ path: inside, word: item.word }];
      });
      if (data.relist) relist();
      if (asking.current !== null && items.length > 0) asking.current.outdated = true;
      if (items.length === 0 || tree === null) return;
      setChanges((held) => {
        const next = { ...held };
        for (const item of items) next[item.path] = (next[item.path] ?? 0) + 1;
        return next;
      });
      const unknown = items.filter((item) => item.word !== "removed" && tree.get(item.path) === undefined);
      if (unknown.length > MOST_ASKED) relist();
      else {
        for (const item of items) if (item.word === "removed") tree.remove(item.path);
        await Promise.all(
          unknown.map(async (item) => {
            try {
              const row = await request<FileRow>(`/v1/files/stat?path=${encodeURIComponent(item.path)}`);
              tree.put(item.path, row.kind as Kind, row.size);
            } catch (error) {
              if (!(error instanceof RequestFailed) || error.status !== 404) relist();
            }
          }),
        );
        setVersion((held) => held + 1);
      }
      flash(items.map((item) => item.path));
    },
    [tree, relist, flash],
  );
  useTopic("files", { event: (data) => void apply(data as Changes), resync: () => relist(), subscribed: () => relist(0) });

  const rows = useMemo(
    () => (tree === null ? [] : typed.trim() === "" ? tree.shown(open) : tree.named(typed.trim())),
    // The tree is changed in place: its version says when.
    [tree, version, open, typed],
  );

  function choose(chosen: string, kind: Kind) {
    if (kind === "folder") {
      setTyped("");
      setOpen((held) => {
        const next = new Set(held);
        if (!next.delete(chosen)) next.add(chosen);
        return next;
      });
    } else go(`/files?path=${encodeURIComponent(chosen)}`);
  }

  const folder = path === null ? "" : folderOf(path);

  async function sendUp(event: ChangeEvent<HTMLInputElement>) {
    for (const file of [...(event.target.files ?? [])]) {
      const to = joined(folder, file.name);
      try {
        await putFile(to, file);
        toasts.done(`${to} is here`);
      } catch (error) {
        toasts.failed(error);
      }
    }
    event.target.value = "";
    relist();
  }

  return (
    <div className="files" data-open={path !== null || undefined}>
      <aside className="tree-pane" aria-label="Files">
        <div className="tree-head">
          <h1>Files</h1>
          <button className="plain-button" title="New file" aria-label="New file" onClick={() => setAsked({ what: "file", in: folder })}>
            <Icon name="plus" />
          </button>
          <button className="plain-button" title="New folder" aria-label="New folder" onClick={() => setAsked({ what: "folder", in: folder })}>
            <Icon name="folder" />
          </button>
          <button className="plain-button" title="Upload" aria-label="Upload" onClick={() => picker.current?.click()}>
            <Icon name="upload" />
          </button>
          <input ref={picker} type="file" multiple hidden onChange={(event) => void sendUp(event)} />
        </div>
        <input
          className="tree-search"
          type="search"
          placeholder="Find by name"
          aria-label="Find by name"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
        {problem && <Notice problem={problem} action={{ label: "Try again", run: () => void load() }} />}
        {tree === null && problem === null && <p className="quiet tree-note">Reading…</p>}
        {tree !== null && rows.length === 0 && (
          <p className="empty tree-note">{typed ? "No file is called that." : "The workspace is empty. Make a file, or upload one."}</p>
        )}
        <TreeList rows={rows} chosen={path} flashed={flashed} onChoose={choose} />
        {!complete && <p className="quiet tree-note">Not everything is shown: there are too many files.</p>}
      </aside>
      {path === null ? (
        <div className="file-none">
          <p className="quiet">Choose a file to see it.</p>
        </div>
      ) : (
        <FileView
          key={path}
          path={path}
          changes={changes[path] ?? 0}
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
