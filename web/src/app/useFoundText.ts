import { useEffect, useState } from "react";
import type { FileSearchResult, SessionPage } from "../client/api";
import { request } from "../client/http";
import type { Command } from "./commandSearch.logic";
import { foundText, MIN_SEARCHED } from "./foundText.logic";

const TYPING_DELAY = 300;
const MAX_SESSIONS = 5;
const MAX_LINES = 10;
const NOTHING: readonly Command[] = [];

export interface FoundText {
  items: readonly Command[];
  isBusy: boolean;
}

/** What was said in any conversation, and the lines of any file, that contain what is typed. A moment after the typing. */
export function useFoundText(typed: string): FoundText {
  const wanted = typed.trim();
  const [found, setFound] = useState<{ of: string; items: readonly Command[] }>({ of: "", items: NOTHING });
  const isWanted = wanted.length >= MIN_SEARCHED;
  useEffect(() => {
    if (!isWanted) return;
    let isCurrent = true;
    const left = new AbortController();
    const { signal } = left;
    const timer = setTimeout(() => {
      const query = encodeURIComponent(wanted);
      void Promise.all([
        // One of the two may be refused, or take too long. The other is shown all the same.
        request<SessionPage>(`/v1/sessions?limit=${MAX_SESSIONS}&query=${query}`, { signal }).catch(() => null),
        request<FileSearchResult>(`/v1/files/search?limit=${MAX_LINES}&query=${query}`, { signal }).catch(() => null),
      ]).then(([sessions, files]) => {
        if (isCurrent) setFound({ of: wanted, items: foundText(wanted, sessions?.sessions ?? [], files?.hits ?? []) });
      });
    }, TYPING_DELAY);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
      left.abort();
    };
  }, [wanted, isWanted]);
  const isThere = isWanted && found.of === wanted;
  return { items: isThere ? found.items : NOTHING, isBusy: isWanted && !isThere };
}
