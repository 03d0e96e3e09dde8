import { useCallback, useEffect, useRef, useState } from "react";
import type { NamedSite, NamedSites, PreviewAddress } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { openAddressInTab } from "./usePreview";

const openSite = (name: string): Promise<PreviewAddress> =>
  request<PreviewAddress>(`/v1/preview/sites/${name}/open`, { method: "POST" });

export interface OpenSite {
  address: string;
  /** Counts the openings, so that opening it again makes a new frame. */
  opening: number;
}

export type SiteState =
  | { kind: "starting" }
  | { kind: "off" }
  | { kind: "stopped" }
  | { kind: "failed"; problem: Problem }
  | { kind: "shown"; site: OpenSite };

/** A site of a feature, started and opened when the page is. `stop` ends its programs until `open` starts them again. */
export function useSite(name: string): { state: SiteState; open: () => void; stop: () => Promise<void> } {
  const [state, setState] = useState<SiteState>({ kind: "starting" });
  const openings = useRef(0);
  const open = useCallback(() => {
    const mine = ++openings.current;
    const show = (next: SiteState) => mine === openings.current && setState(next);
    show({ kind: "starting" });
    request<NamedSites>("/v1/preview/sites")
      .then(async ({ sites }) => {
        if (!sites.some((one) => one.name === name && one.enabled)) return show({ kind: "off" });
        const { address } = await openSite(name);
        show({ kind: "shown", site: { address, opening: mine } });
      })
      .catch((error: unknown) => show({ kind: "failed", problem: problemOf(error) }));
  }, [name]);
  const stop = useCallback(async () => {
    openings.current++;
    await request<NamedSite>(`/v1/preview/sites/${name}/stop`, { method: "POST" });
    setState({ kind: "stopped" });
  }, [name]);
  useEffect(() => {
    open();
    return () => {
      openings.current++;
    };
  }, [open]);
  return { state, open, stop };
}

export const openSiteInTab = (name: string): Promise<void> => openAddressInTab(() => openSite(name));
