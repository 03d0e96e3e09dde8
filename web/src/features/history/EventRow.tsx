import { clock, fullMoment } from "../../ui/moments";
import { unhidden } from "../../ui/unhidden";
import { whoWords } from "./history.logic";
import { type Recorded } from "./timeline.logic";

/** One event of the timeline. Its words may be an agent's: nothing in them is hidden, nothing acts. */
export function EventRow({ event, title, facts, at }: { event: Recorded; title: string; facts: string; at: number }) {
  return (
    <div className="event" data-room={event.kind.split(".")[0]} data-kind={event.kind}>
      <span className="knot" aria-hidden="true" />
      <span className="event-title">{unhidden(title)}</span>
      <time dateTime={event.at} title={fullMoment(at)}>
        {clock(at)}
      </time>
      <span className="event-facts">
        <span title={event.who}>{whoWords(event.who)}</span>
        {facts && <span className="event-words">{unhidden(facts)}</span>}
      </span>
    </div>
  );
}
