import { useEffect, useMemo, useState } from "react";
import type { SessionInfo, SessionPage } from "../../client/api";
import { SESSION_PAGE } from "../../client/early";
import { request } from "../../client/http";
import { useSessionList } from "./SessionListProvider";
import { withOlder } from "./sessionList.logic";

/** Older sessions than these are found by a search only. */
const MAX_PAGES = 25;
const NONE: readonly SessionInfo[] = [];

/** The newest sessions at once, and then the older ones too, page by page, while the component is there. */
export function useEverySession(): readonly SessionInfo[] {
  const { value: newest } = useSessionList();
  const [older, setOlder] = useState<readonly SessionInfo[]>(NONE);
  const isCut = (newest?.length ?? 0) >= SESSION_PAGE;
  useEffect(() => {
    if (!isCut) return;
    const left = new AbortController();
    async function load() {
      let cursor: string | null = "";
      for (let page = 0; page < MAX_PAGES && cursor !== null; page++) {
        const path: string = `/v1/sessions?limit=${SESSION_PAGE}&cursor=${encodeURIComponent(cursor)}`;
        const loaded = await request<SessionPage>(path, { signal: left.signal });
        setOlder((held) => withOlder(held, loaded.sessions));
        cursor = loaded.next;
      }
    }
    // The newest ones are there all the same.
    load().catch(() => undefined);
    return () => left.abort();
  }, [isCut]);
  return useMemo(() => withOlder(newest ?? NONE, older), [newest, older]);
}
