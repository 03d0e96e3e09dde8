import type { TextHit } from "../../client/api";

export interface FileHits {
  path: string;
  hits: TextHit[];
}

/** Hits under their files, in the order they came. */
export function byFile(hits: readonly TextHit[]): FileHits[] {
  const groups = new Map<string, FileHits>();
  for (const hit of hits) {
    const group = groups.get(hit.path) ?? { path: hit.path, hits: [] };
    group.hits.push(hit);
    groups.set(hit.path, group);
  }
  return [...groups.values()];
}

const BEFORE = 30;
const LONGEST = 160;

/** A line cut to what is around the match, in pieces; columns are bytes, so that the match is looked for again near its place. */
export function marked(hit: Pick<TextHit, "text" | "column">, wanted: string, regex: boolean): { text: string; hit: boolean }[] {
  let at = -1;
  let length = wanted.length;
  if (!regex) at = hit.text.toLowerCase().indexOf(wanted.toLowerCase());
  if (at < 0) {
    at = Math.min(hit.column - 1, hit.text.length);
    length = 0;
  }
  const lead = hit.text.slice(0, at).trimStart();
  const before = lead.length > BEFORE ? `…${lead.slice(-BEFORE)}` : lead;
  const after = hit.text.slice(at + length);
  return [
    { text: before, hit: false },
    { text: hit.text.slice(at, at + length), hit: true },
    { text: after.length > LONGEST ? `${after.slice(0, LONGEST)}…` : after, hit: false },
  ].filter((piece) => piece.text !== "");
}
