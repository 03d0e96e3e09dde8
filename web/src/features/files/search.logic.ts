import type { TextHit } from "../../client/api";

export interface FileHits {
  path: string;
  hits: TextHit[];
}

/** The hits by file, in their order. */
export function hitsByFile(hits: readonly TextHit[]): FileHits[] {
  const groups = new Map<string, FileHits>();
  for (const hit of hits) {
    const group = groups.get(hit.path) ?? { path: hit.path, hits: [] };
    group.hits.push(hit);
    groups.set(hit.path, group);
  }
  return [...groups.values()];
}

const MAX_BEFORE = 30;
/** Characters before a match that is far from the begin of its line. The text has an ellipsis for all before them. */
const BEFORE_FAR_MATCH = 100;
const MAX_AFTER = 160;

/** The part of a line around the match, in pieces. The column counts bytes, so the match is searched again. */
export function highlightMatch(
  hit: Pick<TextHit, "text" | "column">,
  wanted: string,
  regex: boolean,
): { text: string; hit: boolean }[] {
  let at = -1;
  let length = wanted.length;
  if (!regex) at = hit.text.toLowerCase().indexOf(wanted.toLowerCase());
  if (at < 0) {
    const isFar = hit.text.startsWith("…") && hit.column > hit.text.length;
    at = Math.min(isFar ? BEFORE_FAR_MATCH + 1 : hit.column - 1, hit.text.length);
    length = 0;
  }
  const lead = hit.text.slice(0, at).trimStart();
  const before = lead.length > MAX_BEFORE ? `…${lead.slice(-MAX_BEFORE)}` : lead;
  const after = hit.text.slice(at + length);
  return [
    { text: before, hit: false },
    { text: hit.text.slice(at, at + length), hit: true },
    { text: after.length > MAX_AFTER ? `${after.slice(0, MAX_AFTER)}…` : after, hit: false },
  ].filter((piece) => piece.text !== "");
}
