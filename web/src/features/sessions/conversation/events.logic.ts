import type { SessionEvent, Streaming } from "../../../client/api";

export interface Stream {
  kind: "message" | "thought";
  id: string;
  text: string;
  /** What it is drawn under, also once it is kept: it stays where it is. */
  key: string;
  /** Where in the message `text` ends, counted in characters as the gateway does and not in UTF-16 units. */
  end: number;
}

export interface Held {
  /** Oldest first, each number once. */
  events: readonly SessionEvent[];
  streams: ReadonlyMap<string, Stream>;
  /** The drawn names of messages that were seen coming, by their number. */
  seen: ReadonlyMap<number, string>;
  /** Pieces that join nothing held: words before them were missed, and the gateway has the whole. */
  loose: readonly Streaming[];
}

const MOST_LOOSE = 2_000;

export type Heard = { event: SessionEvent } | { delta: Streaming };

export const NOTHING: Held = { events: [], streams: new Map(), seen: new Map(), loose: [] };

const keyOf = (one: { kind: string; id: string }) => `${one.kind} ${one.id}`;

const drawnAs = (one: { kind: string; id: string }, last: number) => `live ${one.kind} ${one.id} ${last}`;

/** Events in their order, whichever way and however often they came; a rewind takes away what it took back. */
export function merge(held: readonly SessionEvent[], more: readonly SessionEvent[]): readonly SessionEvent[] {
  if (more.length === 0) return held;
  const last = held.at(-1)?.seq ?? 0;
  const inOrder = more.every((event, index) => event.seq > (more[index - 1]?.seq ?? last));
  const all = inOrder
    ? [...held, ...more]
    : [...new Map([...held, ...more].map((event) => [event.seq, event] as const)).values()].sort((a, b) => a.seq - b.seq);
  const rewinds = (inOrder ? more : all).filter((event) => event.kind === "rewound");
  if (rewinds.length === 0) return all;
  return all.filter((event) => !rewinds.some((rewind) => event.seq < rewind.seq && event.turn !== null && event.turn >= Number(rewind.data["turn"])));
}

/** With one more piece; null when it does not join what is held. */
function joined(streams: ReadonlyMap<string, Stream>, delta: Streaming, last: number): ReadonlyMap<string, Stream> | null {
  const key = keyOf(delta);
  const before = streams.get(key);
  const points = [...delta.text];
  const begins = before === undefined || delta.at === 0;
  if (begins ? delta.at > 0 : delta.at > before.end) return null;
  const fresh = begins ? delta.text : points.slice(before.end - delta.at).join("");
  const text = begins ? fresh : before.text + fresh;
  const end = begins ? points.length : Math.max(before.end, delta.at + points.length);
  return new Map(streams).set(key, { kind: delta.kind, id: delta.id, key: begins ? drawnAs(delta, last) : before.key, text, end });
}

/** What is held once these were heard, in their order. */
export function hear(held: Held, heard: readonly Heard[]): Held {
  const fresh: SessionEvent[] = [];
  let { streams, seen, loose } = held;
  let last = held.events.at(-1)?.seq ?? 0;
  for (const one of heard) {
    if ("delta" in one) {
      const next = joined(streams, one.delta, last);
      if (next === null) loose = [...loose, one.delta].slice(-MOST_LOOSE);
      else streams = next;
      continue;
    }
    const { kind, data } = one.event;
    fresh.push(one.event);
    last = one.event.seq;
    if (kind === "turn.ended" || kind === "rewound") [streams, loose] = [new Map(), []];
    else if (kind === "message" || kind === "thought") {
      const key = `${kind} ${String(data["id"])}`;
      // An agent may go on under the same name at once: words that are not in what was kept are of the next message.
      const coming = streams.get(key);
      if (coming !== undefined && String(data["text"]).includes(coming.text)) {
        streams = new Map([...streams].filter(([name]) => name !== key));
        seen = new Map(seen).set(one.event.seq, coming.key);
      }
    }
  }
  return { events: merge(held.events, fresh), streams, seen, loose };
}

/** What is held with a page that was asked for. Beside the newest events come the words under way, whole. */
export function readPage(held: Held, events: readonly SessionEvent[], streaming: readonly Streaming[] | null): Held {
  const merged = merge(held.events, events);
  if (streaming === null) return { ...held, events: merged };
  let streams: ReadonlyMap<string, Stream> = new Map();
  const last = merged.at(-1)?.seq ?? 0;
  for (const one of streaming) {
    const known = held.streams.get(keyOf(one));
    const end = [...one.text].length;
    // Pieces that came while the answer was on its way are newer than it.
    const newer = known !== undefined && known.end > end && known.text.startsWith(one.text);
    streams = new Map(streams).set(keyOf(one), newer ? known : { kind: one.kind, id: one.id, key: known?.key ?? drawnAs(one, last), text: one.text, end });
  }
  for (const piece of held.loose) streams = joined(streams, piece, last) ?? streams;
  return { events: merged, streams, seen: held.seen, loose: [] };
}
