import { useCallback, useEffect, useRef, useState } from "react";
import type { FileEntry, FileList, FileTree } from "../../client/api";
import { type Problem, problemOf, RequestFailed, request } from "../../client/http";
import { useTopic } from "../../data/connection";
import { ChangeCounter, type FileKind, FolderCursors, isIgnored, listedRows, Tree, workspacePath } from "./tree.logic";

const HIGHLIGHT_TIME = 1_600;
/** With more new paths at once, listing all files is faster than fetching each. */
const MAX_FETCHED = 30;
const MAX_HIGHLIGHTED = 500;
const RELIST_DELAY = 150;
/** Files are listed after this time even while changes keep coming. */
const MAX_RELIST_DELAY = 1_500;
/** The list is fetched when the topic is subscribed, so that no change is missed, but not later than this. */
const SUBSCRIBE_TIMEOUT = 1_000;

interface FileChanges {
  relist?: boolean;
  items?: { path: string; word: "added" | "changed" | "removed" }[];
}

export interface LiveTree {
  tree: Tree | null;
  /** Grows when the tree is changed in place. */
  version: number;
  complete: boolean;
  problem: Problem | null;
  highlighted: ReadonlySet<string>;
  /** Grows when the open file changes. */
  changes: number;
  load: () => void;
  relist: () => void;
  /** Lists the next files of a folder, where the tree has not all of them. */
  listMore: (folder: string) => void;
}

/**
 * The files of the workspace, kept up to date. `open` is the file whose changes are counted; `all` includes ignored
 * files. It does not use `useResource`, because the tree is changed in place and new paths are fetched one by one.
 */
export function useTree(open: string | null, all: boolean): LiveTree {
  const [tree, setTree] = useState<Tree | null>(null);
  const [version, setVersion] = useState(0);
  const [complete, setComplete] = useState(true);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [highlighted, setHighlighted] = useState<ReadonlySet<string>>(new Set());
  const [changes, setChanges] = useState(0);
  const timer = useRef(0);
  const waitingSince = useRef<number | null>(null);
  const inFlight = useRef<{ outdated: boolean } | null>(null);
  const changeCounts = useRef(new ChangeCounter());
  const cursors = useRef(new FolderCursors());
  const relistSoon = useRef<(after?: number) => void>(() => undefined);

  const load = useCallback(async () => {
    const mine = { outdated: false };
    inFlight.current = mine;
    try {
      const found = await request<FileTree>(`/v1/files/tree${all ? "?all=true" : ""}`);
      if (inFlight.current !== mine) return;
      setTree(new Tree(found.rows));
      cursors.current = new FolderCursors();
      setComplete(found.complete);
      setProblem(null);
    } catch (error) {
      if (inFlight.current === mine) setProblem(problemOf(error));
    }
    if (inFlight.current !== mine) return;
    inFlight.current = null;
    // Files changed while the list was fetched, so it may be old.
    if (mine.outdated) relistSoon.current();
  }, [all]);
  const relist = useCallback(
    (after = RELIST_DELAY) => {
      const now = performance.now();
      if (after > 0 && waitingSince.current !== null && now - waitingSince.current > MAX_RELIST_DELAY) return;
      waitingSince.current ??= now;
      clearTimeout(timer.current);
      timer.current = window.setTimeout(() => {
        waitingSince.current = null;
        void load();
      }, after);
    },
    [load],
  );
  useEffect(() => {
    relistSoon.current = relist;
  }, [relist]);
  // The top folder is fast to list, so it is shown first. Its problems are reported by the full list.
  useEffect(() => {
    let wanted = true;
    request<FileList>("/v1/files/list").then(
      ({ entries }) => {
        if (wanted) setTree((held) => held ?? new Tree(listedRows("", entries, all)));
      },
      () => undefined,
    );
    return () => {
      wanted = false;
    };
  }, [all]);
  const isSubscribed = useRef(false);
  useEffect(() => {
    relist(isSubscribed.current ? 0 : SUBSCRIBE_TIMEOUT);
    return () => {
      clearTimeout(timer.current);
      waitingSince.current = null;
    };
  }, [relist]);

  const listMore = useCallback(
    async (folder: string) => {
      const held = cursors.current;
      const after = complete || tree === null ? null : held.take(folder);
      if (after === null) return;
      const query = new URLSearchParams({ path: folder === "" ? "." : folder, ...(after !== "" && { after }) });
      try {
        const { entries, next } = await request<FileList>(`/v1/files/list?${query}`);
        held.put(folder, next);
        for (const [path, kind, size] of listedRows(folder, entries, all)) tree?.put(path, kind, size);
        setVersion((version) => version + 1);
      } catch {
        held.put(folder, after);
      }
    },
    [tree, complete, all],
  );

  const highlight = useCallback((paths: string[]) => {
    setHighlighted((held) => new Set([...held, ...paths]));
    const over = new Set(paths);
    setTimeout(() => setHighlighted((held) => new Set([...held].filter((one) => !over.has(one)))), HIGHLIGHT_TIME);
  }, []);

  const apply = useCallback(
    async (data: FileChanges) => {
      const items = (data.items ?? []).flatMap((item) => {
        const inside = workspacePath(item.path);
        return inside === null || (!all && isIgnored(inside)) ? [] : [{ path: inside, word: item.word }];
      });
      if (data.relist) relist();
      if (inFlight.current !== null && items.length > 0) inFlight.current.outdated = true;
      if (items.some((item) => item.path === open)) setChanges((held) => held + 1);
      if (items.length === 0 || tree === null) return;
      const unknown = items.filter((item) => item.word !== "removed" && tree.get(item.path) === undefined);
      if (unknown.length > MAX_FETCHED) relist();
      else {
        for (const item of items) {
          if (item.word === "removed") tree.remove(item.path);
          changeCounts.current.add(item.path);
        }
        await Promise.all(
          unknown.map(async (item) => {
            const before = changeCounts.current.countOf(item.path);
            try {
              const row = await request<FileEntry>(`/v1/files/stat?path=${encodeURIComponent(item.path)}`);
              // A later change is newer than this reply.
              if (changeCounts.current.countOf(item.path) === before)
                tree.put(item.path, row.kind as FileKind, row.size);
            } catch (error) {
              if (!(error instanceof RequestFailed) || error.status !== 404) relist();
            }
          }),
        );
        setVersion((held) => held + 1);
      }
      highlight(items.slice(0, MAX_HIGHLIGHTED).map((item) => item.path));
    },
    [tree, open, all, relist, highlight],
  );
  useTopic("files", {
    event: (data) => void apply(data as FileChanges),
    resync: () => relist(),
    subscribed: () => {
      isSubscribed.current = true;
      relist(0);
    },
  });

  return {
    tree,
    version,
    complete,
    problem,
    highlighted,
    changes,
    load: () => void load(),
    relist: () => relist(),
    listMore: (folder) => void listMore(folder),
  };
}
