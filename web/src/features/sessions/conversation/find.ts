import { useCallback, useEffect, useMemo, useState } from "react";
import { found, step } from "./find.logic";
import type { Item } from "./transcript.logic";

export interface Find {
  open: boolean;
  looked: string;
  at: number;
  count: number;
  /** The item that is looked at. */
  key: string | null;
  look: (words: string) => void;
  step: (by: 1 | -1) => void;
  close: () => void;
}

/** Ctrl-F within a session. Pressed again in its field it is the browser's. `go` brings an item into view. */
export function useFind(items: readonly Item[], go: (index: number) => void): Find {
  const [open, setOpen] = useState(false);
  const [looked, setLooked] = useState("");
  const [key, setKey] = useState<string | null>(null);
  const places = useMemo(() => (open ? found(items, looked) : []), [open, items, looked]);
  const here = key === null ? -1 : items.findIndex((item) => item.key === key);

  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "f" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
      if (document.querySelector("dialog[open]") !== null || (event.target as Element | null)?.closest?.(".find")) return;
      event.preventDefault();
      setOpen(true);
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);

  const move = useCallback(
    (among: readonly number[], from: number | null, by: 1 | -1) => {
      const place = step(among, from, by);
      setKey(place === null ? null : (items[place]?.key ?? null));
      if (place !== null) go(place);
    },
    [items, go],
  );
  const look = useCallback(
    (words: string) => {
      setLooked(words);
      move(found(items, words), null, -1);
    },
    [items, move],
  );
  // What is only read now may be the first that is found.
  useEffect(() => {
    if (here === -1 && places.length > 0) move(places, null, -1);
  }, [here, places, move]);
  // Older ones that are read meanwhile shift its place.
  useEffect(() => {
    if (here !== -1) go(here);
  }, [here, go]);
  const close = useCallback(() => {
    setOpen(false);
    setKey(null);
  }, []);
  return { open, looked, at: places.includes(here) ? places.length - places.indexOf(here) : 0, count: places.length, key, look, step: (by) => move(places, here === -1 ? null : here, by), close };
}
