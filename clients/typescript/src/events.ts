/** What others are told: `home.events`. */

import type {
  CloudEvent,
  DeadLetterChange,
  DeadLetterPage,
  Delivery,
  EventImport,
  EventPage,
  EventRecords,
  PublishedEvent,
} from "./api.ts";
import type { Link } from "./freehold.ts";
import { allRecords } from "./records.ts";
import { followEvents } from "./stream.ts";

const EVENTS = "/v1/slots/events";

/** The token needs the scope `events`. */
export class Events {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** Tell something. With a `key` it is told once, however often it is sent. */
  publish(
    type: string,
    data: Record<string, unknown> = {},
    options: { subject?: string; key?: string } = {},
  ): Promise<PublishedEvent> {
    return this.link.connection.post(EVENTS, { type, data, ...options });
  }

  /** Events after a cursor. Pass the page's `cursor` as `after` to read on. */
  read(
    after = 0,
    { types = [], limit = 100, newest = false }: { types?: readonly string[]; limit?: number; newest?: boolean } = {},
  ): Promise<EventPage> {
    return this.link.connection.get(EVENTS, { after, type: types, limit, newest });
  }

  /** Events as they come; without `after`, from now on. Connects again by itself, and misses nothing by that. */
  async *stream(
    after: number | null = null,
    { types = [] }: { types?: readonly string[] } = {},
  ): AsyncGenerator<CloudEvent> {
    for await (const text of followEvents(this.link.connection, `${EVENTS}/stream`, after, { type: types }))
      yield JSON.parse(text) as CloudEvent;
  }

  /** Where events are sent, and how far that is. */
  delivery(): Promise<Delivery> {
    return this.link.connection.get(`${EVENTS}/delivery`);
  }

  deadLetters(after = 0, { limit = 100 }: { limit?: number } = {}): Promise<DeadLetterPage> {
    return this.link.connection.get(`${EVENTS}/dead`, { after, limit });
  }

  /** Send dead letters again: these, or all of them. Returns how many. */
  async resend(sequences: readonly number[] = []): Promise<number> {
    return (await this.link.connection.post<DeadLetterChange>(`${EVENTS}/dead/resend`, { sequences })).count;
  }

  /** Remove dead letters: these, or all of them. Returns how many. */
  async drop(sequences: readonly number[] = []): Promise<number> {
    return (await this.link.connection.post<DeadLetterChange>(`${EVENTS}/dead/drop`, { sequences })).count;
  }

  /** The whole log, as CloudEvents in JSON. */
  export(): AsyncGenerator<EventRecords["records"][number]> {
    return allRecords(this.link.connection, `${EVENTS}/export`);
  }

  /** Add events of another log, at most 200 at once. */
  importRecords(records: EventRecords["records"]): Promise<EventImport> {
    return this.link.connection.post(`${EVENTS}/import`, { records });
  }
}
