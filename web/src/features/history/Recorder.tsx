import { useCallback, useState } from "react";
import type { EventPage } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { fullMoment } from "../../ui/moments";
import { Notice } from "../../ui/Notice";
import { useTopic } from "../shell/live";
import { factsOf, FILTERS, isIn, together, wordsOf, type Recorded } from "./recorder.logic";

const PIECE = 300;

/** Everything that happened, the newest first, as the timeline has it. */
export function Recorder() {
  const [events, setEvents] = useState<Recorded[]>([]);
  const [oldest, setOldest] = useState<number | null>(null);
  const [filter, setFilter] = useState("all");
  const [problem, setProblem] = useState<Problem | null>(null);

  const load = useCallback(async (last: number) => {
    const after = Math.max(0, last - PIECE);
    try {
      const page = await request<EventPage>(`/v1/timeline?after=${after}&limit=${PIECE}`);
      setEvents((held) => together(held, page.events, held.length + PIECE));
      setOldest(after);
      setProblem(null);
    } catch (error) {
      setProblem(problemOf(error));
    }
  }, []);
  useTopic(
    "timeline",
    {
      subscribed: (seq) => void load(seq),
      resync: (seq) => void load(seq),
      event: (data) => setEvents((held) => together(held, [data as Recorded])),
    },
    { durable: true },
  );

  const shown = events.filter((event) => isIn(event, filter));
  return (
    <>
      <div className="filters" role="group" aria-label="Show">
        {FILTERS.map((one) => (
          <button key={one.name} className="small" aria-pressed={filter === one.name} onClick={() => setFilter(one.name)}>
            {one.title}
          </button>
        ))}
      </div>
      {problem && <Notice problem={problem} />}
      {shown.length === 0 && <p className="empty">{oldest === null ? "Reading…" : "Nothing of that kind here."}</p>}
      <ul className="rows recorded">
        {shown.map((event) => (
          <li key={event.seq}>
            <span className="recorded-title">{wordsOf(event)}</span>
            <time className="quiet" dateTime={event.at}>
              {fullMoment(new Date(event.at).getTime() / 1000)}
            </time>
            <span className="quiet recorded-facts">
              {event.who} · {factsOf(event)}
            </span>
          </li>
        ))}
      </ul>
      {oldest !== null && oldest > 0 && (
        <button className="more" onClick={() => void load(oldest)}>
          Show older
        </button>
      )}
    </>
  );
}
