/** Timeline events: `home.timeline`. */

import type { TimelineEvent, TimelineEvents } from "./api.ts";
import type { Link } from "./freehold.ts";

const PAGE = 500;

export interface ReadOptions {
  after?: number;
  before?: number;
  /** Patterns: `egress.*`. */
  kinds?: readonly string[];
  limit?: number;
}

export class Timeline {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** One page of events after `after`, or the last before `before`, the oldest first. */
  read({ after = 0, before, kinds = [], limit = 100 }: ReadOptions = {}): Promise<TimelineEvents> {
    return this.link.connection.get("/v1/timeline", { after, before, kind: kinds, limit });
  }

  /**
   * New events, each once and in order; with `after`, also earlier events after that number. Reconnects by itself and
   * loses nothing. Ends only with an error, or when the loop is left.
   */
  async *follow({ after, kinds = [] }: { after?: number; kinds?: readonly string[] } = {}): AsyncGenerator<TimelineEvent> {
    const wanted = kinds.map(patternOf);
    let at = after ?? null;
    for await (const message of this.link.follow("timeline", after ?? null)) {
      if (message.kind === "event" && (at === null || message.seq > at)) {
        at = message.seq;
        const event = message.data as TimelineEvent;
        if (wanted.length === 0 || wanted.some((pattern) => pattern.test(event.kind))) yield event;
      } else if (message.kind === "resync") {
        // The socket lost messages: read the missed events page by page.
        for (let more: number | null = at ?? message.seq; more !== null; ) {
          const page: TimelineEvents = await this.read({ after: more, kinds, limit: PAGE });
          for (const event of page.events) {
            at = event.seq;
            yield event;
          }
          more = page.next;
        }
        at = Math.max(message.seq, at ?? 0);
      }
    }
  }
}

/** `*` stands for anything and `?` for one character, as in a shell. */
function patternOf(kind: string): RegExp {
  const escaped = kind.replace(/[.+^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll("*", ".*").replaceAll("?", ".")}$`);
}
