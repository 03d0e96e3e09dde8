import { useState } from "react";
import type { SessionInfo, SessionPage } from "../../../client/api";
import { SESSION_PAGE } from "../../../client/early";
import { request } from "../../../client/http";
import { useToasts } from "../../../ui/Toasts";
import { useSessionList } from "../../session-list/SessionListProvider";

export interface OlderSessions {
  sessions: readonly SessionInfo[];
  hasMore: boolean;
  load: (shown: readonly SessionInfo[]) => Promise<void>;
}

/** The sessions after the first page, as far as they were loaded. */
export function useOlderSessions(): OlderSessions {
  const { value: newest } = useSessionList();
  const toasts = useToasts();
  const [sessions, setSessions] = useState<readonly SessionInfo[]>([]);
  const [isEnd, setIsEnd] = useState(false);
  async function load(shown: readonly SessionInfo[]) {
    const last = shown.at(-1);
    if (last === undefined) return;
    const cursor = encodeURIComponent(`${last.updated} ${last.id}`);
    try {
      const page = await request<SessionPage>(`/v1/sessions?limit=${SESSION_PAGE}&cursor=${cursor}`);
      setSessions((before) => [...before, ...page.sessions]);
      setIsEnd(page.next === null);
    } catch (error) {
      toasts.failed(error);
    }
  }
  return { sessions, hasMore: !isEnd && (newest?.length ?? 0) >= SESSION_PAGE, load };
}
