import type { Item } from "./transcript.logic";

/** The words of an item that can be looked for. */
export function wordsOf(item: Item): string {
  switch (item.kind) {
    case "prompt":
    case "message":
    case "thought":
      return item.text;
    case "tool":
      return [item.title, item.input, ...item.parts.map((part) => (part.type === "text" ? part.text : `${part.path}\n${part.old}\n${part.now}`))].join("\n");
    case "plan":
      return item.entries.map((entry) => entry.content).join("\n");
    case "approval":
      return `${item.title}\n${item.note}`;
    case "error":
      return `${item.text}\n${item.hint}`;
    case "ended":
    case "rewound":
      return "";
  }
}

const lowered = new WeakMap<Item, string>();

function lower(item: Item): string {
  const known = lowered.get(item);
  if (known !== undefined) return known;
  const words = wordsOf(item).toLowerCase();
  lowered.set(item, words);
  return words;
}

/** The places of the items that hold the words, whatever their case. */
export function found(items: readonly Item[], looked: string): number[] {
  const wanted = looked.trim().toLowerCase();
  if (wanted === "") return [];
  return items.flatMap((item, place) => (lower(item).includes(wanted) ? [place] : []));
}

/** The next place from here, around the end. */
export function step(places: readonly number[], from: number | null, by: 1 | -1): number | null {
  if (places.length === 0) return null;
  if (from === null) return places.at(-1) ?? null;
  if (by === 1) return places.find((place) => place > from) ?? places[0] ?? null;
  return places.findLast((place) => place < from) ?? places.at(-1) ?? null;
}
