/** What was typed and not sent, by session. It outlives a reload, a closed tab and a gateway that is away. */

export interface Draft {
  text: string;
  /** Files that were picked; those still named in the text go along. */
  picked: string[];
}

export const EMPTY: Draft = { text: "", picked: [] };
const MOST = 200_000;
const keyOf = (id: string) => `freehold.draft.${id}`;

export function readDraft(id: string): Draft {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(keyOf(id)) ?? "null");
    if (typeof kept !== "object" || kept === null || !("text" in kept) || typeof kept.text !== "string") return EMPTY;
    const picked = "picked" in kept && Array.isArray(kept.picked) ? kept.picked.filter((one): one is string => typeof one === "string") : [];
    return { text: kept.text, picked };
  } catch {
    return EMPTY;
  }
}

/** A store that is full or shut takes nothing: what is typed stays on the page all the same. */
export function keepDraft(id: string, draft: Draft): void {
  try {
    if (draft.text === "") localStorage.removeItem(keyOf(id));
    else if (draft.text.length <= MOST) localStorage.setItem(keyOf(id), JSON.stringify(draft));
  } catch {
    return;
  }
}

export const forgetDraft = (id: string): void => keepDraft(id, EMPTY);

/** At an explicit goodbye nothing that was typed stays behind in this browser. */
export function forgetEverything(): void {
  for (const key of Object.keys(localStorage)) if (/^freehold\.(draft|outbox)\./.test(key)) localStorage.removeItem(key);
}
