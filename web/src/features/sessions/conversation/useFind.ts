import { useCallback, useEffect, useMemo, useState } from "react";
import { useOwnsKey } from "../../../ui/pane";
import { useRoute } from "../../../ui/route";
import { findItems, stepFrom } from "./find.logic";
import type { Item } from "./transcript.logic";

export interface Find {
  open: boolean;
  query: string;
  /** The position of the current match, counted from the newest, and the number of matches. */
  position: number;
  count: number;
  /** The key of the current match. */
  key: string | null;
  search: (words: string) => void;
  step: (by: 1 | -1) => void;
  close: () => void;
}

/** Ctrl-F within a session, also with what the address asks for. Pressed again in the field it opens the search of the browser. */
export function useFind(items: readonly Item[], scrollTo: (index: number) => void): Find {
  const ownsKey = useOwnsKey();
  const [open, setOpen] = useState(false);
  const [query, setQuery] = useState("");
  const [key, setKey] = useState<string | null>(null);
  const asked = useRoute().query.get("find");
  useEffect(() => {
    if (asked === null) return;
    setQuery(asked);
    setKey(null);
    setOpen(true);
  }, [asked]);
  const matches = useMemo(() => (open ? findItems(items, query) : []), [open, items, query]);
  const current = key === null ? -1 : items.findIndex((item) => item.key === key);

  useEffect(() => {
    const handleKey = (event: KeyboardEvent) => {
      if (event.key !== "f" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
      if (
        !ownsKey(event) ||
        document.querySelector("dialog[open]") !== null ||
        (event.target as Element | null)?.closest?.(".conversation-find")
      )
        return;
      event.preventDefault();
      setOpen(true);
    };
    window.addEventListener("keydown", handleKey);
    return () => window.removeEventListener("keydown", handleKey);
  }, [ownsKey]);

  const move = useCallback(
    (among: readonly number[], from: number | null, by: 1 | -1) => {
      const index = stepFrom(among, from, by);
      setKey(index === null ? null : (items[index]?.key ?? null));
      if (index !== null) scrollTo(index);
    },
    [items, scrollTo],
  );
  const search = useCallback(
    (words: string) => {
      setQuery(words);
      move(findItems(items, words), null, -1);
    },
    [items, move],
  );
  // An older page that was just loaded may contain the first match.
  useEffect(() => {
    if (current === -1 && matches.length > 0) move(matches, null, -1);
  }, [current, matches, move]);
  // Older pages shift the index of the current match.
  useEffect(() => {
    if (current !== -1) scrollTo(current);
  }, [current, scrollTo]);
  const close = useCallback(() => {
    setOpen(false);
    setKey(null);
  }, []);
  return {
    open,
    query,
    position: matches.includes(current) ? matches.length - matches.indexOf(current) : 0,
    count: matches.length,
    key,
    search,
    step: (by) => move(matches, current === -1 ? null : current, by),
    close,
  };
}
