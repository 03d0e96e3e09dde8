import type { Item } from "./transcript.logic";

/** The text of an item that can be searched. */
export function searchableText(item: Item): string {
  switch (item.kind) {
    case "prompt":
    case "message":
    case "thought":
    case "pictures":
      return item.text;
    case "tool":
      return [
        item.title,
        item.input,
        ...item.parts.map((part) => (part.type === "text" ? part.text : `${part.path}\n${part.old}\n${part.now}`)),
      ].join("\n");
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

const lowerCaseCache = new WeakMap<Item, string>();

function lowerCaseText(item: Item): string {
  const known = lowerCaseCache.get(item);
  if (known !== undefined) return known;
  const words = searchableText(item).toLowerCase();
  lowerCaseCache.set(item, words);
  return words;
}

/** The indexes of the items that contain the query, in any case; when there is none, of those with all of its words. */
export function findItems(items: readonly Item[], query: string): number[] {
  const wanted = query.trim().toLowerCase();
  if (wanted === "") return [];
  const found = indexesOf(items, [wanted]);
  return found.length > 0 ? found : indexesOf(items, wanted.split(/\s+/));
}

function indexesOf(items: readonly Item[], words: readonly string[]): number[] {
  return items.flatMap((item, index) => {
    const text = lowerCaseText(item);
    return words.every((word) => text.includes(word)) ? [index] : [];
  });
}

/** The next index from here, in a circle. Without a start it is the last one. */
export function stepFrom(places: readonly number[], from: number | null, by: 1 | -1): number | null {
  if (places.length === 0) return null;
  if (from === null) return places.at(-1) ?? null;
  if (by === 1) return places.find((place) => place > from) ?? places[0] ?? null;
  return places.findLast((place) => place < from) ?? places.at(-1) ?? null;
}
