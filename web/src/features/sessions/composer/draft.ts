/** What was typed and not sent, by session. A draft survives a reload, a closed tab and an outage of the gateway. */

export interface Draft {
  text: string;
  /** Files that were picked. Those that the text still names are sent along. */
  picked: string[];
}

export const EMPTY_DRAFT: Draft = { text: "", picked: [] };
const MAX_LENGTH = 200_000;
const keyOf = (session: string) => `freehold.draft.${session}`;

export function readDraft(session: string): Draft {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(keyOf(session)) ?? "null");
    if (typeof stored !== "object" || stored === null || !("text" in stored) || typeof stored.text !== "string")
      return EMPTY_DRAFT;
    const picked =
      "picked" in stored && Array.isArray(stored.picked)
        ? stored.picked.filter((one): one is string => typeof one === "string")
        : [];
    return { text: stored.text, picked };
  } catch {
    return EMPTY_DRAFT;
  }
}

/** Stores a draft. When the browser refuses (full or disabled storage), the text stays on the page only. */
export function writeDraft(session: string, draft: Draft): void {
  try {
    if (draft.text === "") localStorage.removeItem(keyOf(session));
    else if (draft.text.length <= MAX_LENGTH) localStorage.setItem(keyOf(session), JSON.stringify(draft));
  } catch {
    return;
  }
}

export const removeDraft = (session: string): void => writeDraft(session, EMPTY_DRAFT);

/** Removes every draft and every unsent prompt from this browser, and returns what puts them back. */
export function takeDrafts(): () => void {
  const taken = Object.entries({ ...localStorage } as Record<string, string>).filter(([key]) =>
    /^freehold\.(draft|outbox)\./.test(key),
  );
  for (const [key] of taken) localStorage.removeItem(key);
  return () => {
    for (const [key, value] of taken) localStorage.setItem(key, value);
  };
}
