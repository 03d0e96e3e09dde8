import { useCallback, useEffect, useRef, useState } from "react";
import type { PreviewAddress } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";

const openPreview = (port: number, path: string): Promise<PreviewAddress> =>
  request<PreviewAddress>(`/v1/preview/${port}/open`, { method: "POST", body: { path } });

export interface OpenPreview {
  port: number;
  path: string;
  address: string;
  origin: string;
  /** Counts the openings, so that opening it again makes a new frame. */
  opening: number;
}

/** The preview of a port. Its address works once, so `open` requests a new one, at the same path or another. */
export function usePreview(port: number | null): {
  preview: OpenPreview | null;
  problem: Problem | null;
  open: (path?: string) => void;
} {
  const [held, setHeld] = useState<{ preview: OpenPreview | null; problem: Problem | null }>({
    preview: null,
    problem: null,
  });
  const openings = useRef(0);
  const target = useRef({ port, path: "/" });
  const open = useCallback(
    (path?: string) => {
      if (port === null) return;
      if (target.current.port !== port) target.current = { port, path: "/" };
      const to = path ?? target.current.path;
      target.current.path = to;
      const mine = ++openings.current;
      openPreview(port, to)
        .then(({ address, origin }) => {
          if (mine === openings.current)
            setHeld({ preview: { port, path: to, address, origin, opening: mine }, problem: null });
        })
        .catch((error: unknown) => {
          if (mine === openings.current) setHeld({ preview: null, problem: problemOf(error) });
        });
    },
    [port],
  );
  useEffect(() => {
    open();
    return () => {
      openings.current++;
    };
  }, [open]);
  const current = held.preview === null || held.preview.port === port;
  return { preview: current ? held.preview : null, problem: current ? held.problem : null, open };
}

/** Opens a preview in a new tab. */
export const openInTab = (port: number, path: string): Promise<void> => openAddressInTab(() => openPreview(port, path));

/** The tab must be opened during the click, before its address is known. */
export async function openAddressInTab(open: () => Promise<PreviewAddress>): Promise<void> {
  const tab = window.open("", "_blank");
  try {
    const { address } = await open();
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
