import type { SessionEvent, StreamingText } from "../../../client/api";

export interface Stream {
  kind: "message" | "thought";
  id: string;
  text: string;
  /** The key under which it is drawn. The finished message keeps it, so that it stays in its place. */
  key: string;
  /** The length of the text so far, in characters as the gateway counts them and not in UTF-16 units. */
  end: number;
}

/** The loaded part of a session. */
export interface SessionLog {
  /** Oldest first, each number once. */
  events: readonly SessionEvent[];
  streams: ReadonlyMap<string, Stream>;
  /** The keys under which messages were drawn while they were written, by the number of their event. */
  streamedKeys: ReadonlyMap<number, string>;
  /** Pieces of text whose beginning was missed. The gateway has the whole text. */
  unmatched: readonly StreamingText[];
}

const MAX_UNMATCHED = 2_000;

export type SessionMessage = { event: SessionEvent } | { delta: StreamingText };

export const EMPTY_LOG: SessionLog = { events: [], streams: new Map(), streamedKeys: new Map(), unmatched: [] };

const keyOf = (one: { kind: string; id: string }) => `${one.kind} ${one.id}`;

const drawKey = (one: { kind: string; id: string }, last: number) => `live ${one.kind} ${one.id} ${last}`;

/**
 * All events once and in order. A rewind removes the events of the turns that it took back. What is held stays the same
 * object, so that nothing is drawn again when a page brings nothing new.
 */
export function mergeEvents(held: readonly SessionEvent[], more: readonly SessionEvent[]): readonly SessionEvent[] {
  if (more.length === 0) return held;
  const last = held.at(-1)?.seq ?? 0;
  const inOrder = more.every((event, index) => event.seq > (more[index - 1]?.seq ?? last));
  const all = inOrder
    ? [...held, ...more]
    : [...new Map([...more, ...held].map((event) => [event.seq, event] as const)).values()].sort(
        (a, b) => a.seq - b.seq,
      );
  const rewinds = (inOrder ? more : all).filter((event) => event.kind === "rewound");
  const left = all.filter(
    (event) =>
      !rewinds.some(
        (rewind) => event.seq < rewind.seq && event.turn !== null && event.turn >= Number(rewind.data["turn"]),
      ),
  );
  return left.length === held.length && left.every((event, index) => event === held[index]) ? held : left;
}

/** The streams with one more piece of text; null when the text before it is missing. */
function withPiece(
  streams: ReadonlyMap<string, Stream>,
  delta: StreamingText,
  last: number,
): ReadonlyMap<string, Stream> | null {
  const key = keyOf(delta);
  const before = streams.get(key);
  const points = [...delta.text];
  const isStart = before === undefined || delta.at === 0;
  if (isStart ? delta.at > 0 : delta.at > before.end) return null;
  const fresh = isStart ? delta.text : points.slice(before.end - delta.at).join("");
  const text = isStart ? fresh : before.text + fresh;
  const end = isStart ? points.length : Math.max(before.end, delta.at + points.length);
  return new Map(streams).set(key, {
    kind: delta.kind,
    id: delta.id,
    key: isStart ? drawKey(delta, last) : before.key,
    text,
    end,
  });
}

/** The log after these messages. */
export function applyMessages(held: SessionLog, messages: readonly SessionMessage[]): SessionLog {
  const fresh: SessionEvent[] = [];
  let { streams, streamedKeys, unmatched } = held;
  let last = held.events.at(-1)?.seq ?? 0;
  for (const one of messages) {
    if ("delta" in one) {
      const next = withPiece(streams, one.delta, last);
      if (next === null) unmatched = [...unmatched, one.delta].slice(-MAX_UNMATCHED);
      else streams = next;
      continue;
    }
    const { kind, data } = one.event;
    fresh.push(one.event);
    last = one.event.seq;
    if (kind === "turn.ended" || kind === "rewound") [streams, unmatched] = [new Map(), []];
    else if (kind === "message" || kind === "thought") {
      const key = `${kind} ${String(data["id"])}`;
      // An agent may start the next message under the same id at once. Its text is not part of the finished message.
      const stream = streams.get(key);
      if (stream !== undefined && String(data["text"]).includes(stream.text)) {
        streams = new Map([...streams].filter(([name]) => name !== key));
        streamedKeys = new Map(streamedKeys).set(one.event.seq, stream.key);
      }
    }
  }
  return { events: mergeEvents(held.events, fresh), streams, streamedKeys, unmatched };
}

/** The log with a fetched page. The newest page also has the texts that are being written (`streaming`). */
export function withPage(
  held: SessionLog,
  events: readonly SessionEvent[],
  streaming: readonly Pick<StreamingText, "kind" | "id" | "text">[] | null,
): SessionLog {
  const merged = mergeEvents(held.events, events);
  if (streaming === null) return { ...held, events: merged };
  let streams: ReadonlyMap<string, Stream> = new Map();
  const last = merged.at(-1)?.seq ?? 0;
  for (const one of streaming) {
    const known = held.streams.get(keyOf(one));
    const end = [...one.text].length;
    // Pieces that arrived while the page was fetched are newer than the page.
    const isNewer = known !== undefined && known.end > end && known.text.startsWith(one.text);
    streams = new Map(streams).set(
      keyOf(one),
      isNewer ? known : { kind: one.kind, id: one.id, key: known?.key ?? drawKey(one, last), text: one.text, end },
    );
  }
  for (const piece of held.unmatched) streams = withPiece(streams, piece, last) ?? streams;
  if (merged === held.events && held.unmatched.length === 0 && streams.size + held.streams.size === 0) return held;
  return { events: merged, streams, streamedKeys: held.streamedKeys, unmatched: [] };
}
