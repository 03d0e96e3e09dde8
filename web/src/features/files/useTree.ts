import { useCallback, useEffect, useRef, useState } from "react";
import type { FileList, FileRow, FileTree } from "../../client/api";
import { problemOf, request, RequestFailed, type Problem } from "../../client/http";
import { useTopic } from "../shell/live";
import { inWorkspace, isSkipped, Latest, Tree, type Kind } from "./tree.logic";

const FLASH = 1_600;
// More new paths than this at once are quicker listed anew than asked for one by one.
const MOST_ASKED = 30;
const MOST_FLASHED = 500;
const RELIST_AFTER = 150;
// Where changes never stop, it is listed all the same.
const LONGEST_WAIT = 1_500;
// The list is asked for once changes are heard, so that none falls between; but not later than this.
const LIST_WITHOUT = 1_000;

interface Changes {
  relist?: boolean;
  items?: { path: string; word: "added" | "changed" | "removed" }[];
}

export interface LiveTree {
  tree: Tree | null;
  /** Grows when the tree has changed in place. */
  version: number;
  complete: boolean;
  problem: Problem | null;
  flashed: ReadonlySet<string>;
  /** Grows when the file that is open has changed. */
  changes: number;
  load: () => void;
  relist: () => void;
}

/** The workspace's files, kept up to date. `open` is the file whose changes are counted; `all` takes in what is usually left out. */
export function useTree(open: string | null, all: boolean): LiveTree {
  const [tree, setTree] = useState<Tree | null>(null);
  const [version, setVersion] = useState(0);
  const [complete, setComplete] = useState(true);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [flashed, setFlashed] = useState<ReadonlySet<string>>(new Set());
  const [changes, setChanges] = useState(0);
  const timer = useRef(0);
  const waiting = useRef<number | null>(null);
  const asking = useRef<{ outdated: boolean } | null>(null);
  const latest = useRef(new Latest());
  const relistSoon = useRef<(after?: number) => void>(() => undefined);

  const load = useCallback(async () => {
    const mine = { outdated: false };
    asking.current = mine;
    try {
      const found = await request<FileTree>(`/v1/files/tree${all ? "?all=true" : ""}`);
      if (asking.current !== mine) return;
      setTree(new Tree(found.rows));
      setComplete(found.complete);
      setProblem(null);
    } catch (error) {
      if (asking.current === mine) setProblem(problemOf(error));
    }
    if (asking.current !== mine) return;
    asking.current = null;
    // Something changed while the list was on its way: it may have left before that.
    if (mine.outdated) relistSoon.current();
  }, [all]);
  const relist = useCallback(
    (after = RELIST_AFTER) => {
      const now = performance.now();
      if (after > 0 && waiting.current !== null && now - waiting.current > LONGEST_WAIT) return;
      waiting.current ??= now;
      clearTimeout(timer.current);
      timer.current = window.setTimeout(() => {
        waiting.current = null;
        void load();
      }, after);
    },
    [load],
  );
  useEffect(() => {
    relistSoon.current = relist;
  }, [relist]);
  // The outermost folder is there at once, however much lies below it; what is wrong is told by the list of all.
  useEffect(() => {
    let wanted = true;
    request<FileList>("/v1/files/list").then(
      ({ entries }) => {
        const rows = entries.filter((row) => all || !isSkipped(row.name)).map((row) => [row.name, row.kind, row.size] as const);
        if (wanted) setTree((held) => held ?? new Tree(rows));
      },
      () => undefined,
    );
    return () => {
      wanted = false;
    };
  }, [all]);
  const heard = useRef(false);
  useEffect(() => {
    relist(heard.current ? 0 : LIST_WITHOUT);
    return () => {
      clearTimeout(timer.current);
      waiting.current = null;
    };
  }, [relist]);

  const flash = useCallback((paths: string[]) => {
    setFlashed((held) => new Set([...held, ...paths]));
    const over = new Set(paths);
    setTimeout(() => setFlashed((held) => new Set([...held].filter((one) => !over.has(one)))), FLASH);
  }, []);

  const apply = useCallback(
    async (data: Changes) => {
      const items = (data.items ?? []).flatMap((item) => {
        const inside = inWorkspace(item.path);
        return inside === null || (!all && isSkipped(inside)) ? [] : [{ path: inside, word: item.word }];
      });
      if (data.relist) relist();
      if (asking.current !== null && items.length > 0) asking.current.outdated = true;
      if (items.some((item) => item.path === open)) setChanges((held) => held + 1);
      if (items.length === 0 || tree === null) return;
      const unknown = items.filter((item) => item.word !== "removed" && tree.get(item.path) === undefined);
      if (unknown.length > MOST_ASKED) relist();
      else {
        for (const item of items) {
          if (item.word === "removed") tree.remove(item.path);
          latest.current.note(item.path);
        }
        await Promise.all(
          unknown.map(async (item) => {
            const asked = latest.current.of(item.path);
            try {
              const row = await request<FileRow>(`/v1/files/stat?path=${encodeURIComponent(item.path)}`);
              // What was heard of it since then is newer than this answer.
              if (latest.current.of(item.path) === asked) tree.put(item.path, row.kind as Kind, row.size);
            } catch (error) {
              if (!(error instanceof RequestFailed) || error.status !== 404) relist();
            }
          }),
        );
        setVersion((held) => held + 1);
      }
      flash(items.slice(0, MOST_FLASHED).map((item) => item.path));
    },
    [tree, open, all, relist, flash],
  );
  useTopic("files", {
    event: (data) => void apply(data as Changes),
    resync: () => relist(),
    subscribed: () => {
      heard.current = true;
      relist(0);
    },
  });

  return { tree, version, complete, problem, flashed, changes, load: () => void load(), relist: () => relist() };
}
