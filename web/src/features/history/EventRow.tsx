import { formatDateTime, formatTime } from "../../ui/format";
import { shortLine } from "../../ui/plainText.logic";
import { visibleText } from "../../ui/visibleText";
import type { RecordedEvent } from "./eventText.logic";
import { actorText } from "./history.logic";

const MAX_TEXT = 500;

/** One event of the timeline. Its text may come from an agent, so it is made visible and is never a link. */
export function EventRow({
  event,
  title,
  facts,
  at,
}: {
  event: RecordedEvent;
  title: string;
  facts: string;
  at: number;
}) {
  return (
    <div className="history-event" data-area={event.kind.split(".")[0]} data-kind={event.kind}>
      <span className="history-knot" aria-hidden="true" />
      <span className="history-event-title">{visibleText(shortLine(title, MAX_TEXT))}</span>
      <time dateTime={event.at} title={formatDateTime(at)}>
        {formatTime(at)}
      </time>
      <span className="history-event-facts">
        <span title={event.who}>{actorText(event.who)}</span>
        {facts && <span className="history-event-text">{visibleText(shortLine(facts, MAX_TEXT))}</span>}
      </span>
    </div>
  );
}
