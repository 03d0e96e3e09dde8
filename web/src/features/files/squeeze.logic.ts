export interface Squeezed {
  text: string;
  /** Where each character of the text is in the original, and at the end how long that is. */
  places: readonly number[];
}

/** A text without what white space says within its lines, so that two of them can be compared. */
export function squeeze(original: string): Squeezed {
  let text = "";
  const places: number[] = [];
  let at = 0;
  for (const line of original.split("\n")) {
    for (const found of line.matchAll(/\S+/g)) {
      const start = at + found.index;
      if (text !== "" && !text.endsWith("\n")) {
        text += " ";
        places.push(start - 1);
      }
      text += found[0];
      for (let i = 0; i < found[0].length; i++) places.push(start + i);
    }
    at += line.length + 1;
    if (at <= original.length) {
      text += "\n";
      places.push(at - 1);
    }
  }
  places.push(original.length);
  return { text, places };
}

/** A range of a squeezed text as a range of the original. */
export function unsqueeze({ places }: Squeezed, from: number, to: number): [number, number] {
  const start = places[from] ?? 0;
  return [start, to > from ? (places[to - 1] ?? 0) + 1 : start];
}
