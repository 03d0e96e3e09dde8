import { useCallback, useEffect, useRef, useState } from "react";
import type { PreviewAddress } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";

const openPreview = (port: number, path: string): Promise<PreviewAddress> =>
  request<PreviewAddress>(`/v1/preview/${port}/open`, { method: "POST", body: { path } });

export interface Opened {
  port: number;
  path: string;
  address: string;
  origin: string;
  /** Counts the openings: a frame that is opened anew is a new one. */
  turn: number;
}

/** The preview of a port, opened by an address that works once; `open` does it again, at the same path or another. */
export function useOpened(port: number | null): { opened: Opened | null; problem: Problem | null; open: (path?: string) => void } {
  const [held, setHeld] = useState<{ opened: Opened | null; problem: Problem | null }>({ opened: null, problem: null });
  const turn = useRef(0);
  const at = useRef({ port, path: "/" });
  const open = useCallback(
    (path?: string) => {
      if (port === null) return;
      if (at.current.port !== port) at.current = { port, path: "/" };
      const to = path ?? at.current.path;
      at.current.path = to;
      const mine = ++turn.current;
      openPreview(port, to)
        .then(({ address, origin }) => {
          if (mine === turn.current) setHeld({ opened: { port, path: to, address, origin, turn: mine }, problem: null });
        })
        .catch((error: unknown) => {
          if (mine === turn.current) setHeld({ opened: null, problem: problemOf(error) });
        });
    },
    [port],
  );
  useEffect(() => {
    open();
    return () => {
      turn.current++;
    };
  }, [open]);
  const current = held.opened === null || held.opened.port === port;
  return { opened: current ? held.opened : null, problem: current ? held.problem : null, open };
}

/** In a tab of its own. The tab is opened at once, while the press that asked for it still counts. */
export async function openInTab(port: number, path: string): Promise<void> {
  const tab = window.open("", "_blank");
  try {
    const { address } = await openPreview(port, path);
    if (tab === null) location.assign(address);
    else {
      tab.opener = null;
      tab.location.replace(address);
    }
  } catch (error) {
    tab?.close();
    throw error;
  }
}
