import { useState } from "react";
import type { DeadLetter, DeadLetterPage, Delivery, EventPage } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { formatDateTime } from "../../ui/format";
import { visibleText } from "../../ui/visibleText";
import { SlotPage } from "../slots/SlotPage";
import { dataText, deliveryText, newestFirst, shortType } from "./events.logic";
import "./events.css";

const EVENTS = "/v1/slots/events";
const LIMIT = 50;
const LIVE = { topic: "timeline", durable: true, delay: 200 };

/** What others are told: where events are sent, what could not be sent, and the newest events. */
export default function EventsPage() {
  const events = useResource<EventPage>(`${EVENTS}?newest=true&limit=${LIMIT}`, LIVE);
  const delivery = useResource<Delivery>(`${EVENTS}/delivery`, LIVE);
  const dead = useResource<DeadLetterPage>(`${EVENTS}/dead?limit=${LIMIT}`, LIVE);
  const [failure, setFailure] = useState<Problem | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const problem = failure ?? events.problem ?? delivery.problem ?? dead.problem;

  function reload() {
    setFailure(null);
    for (const one of [events, delivery, dead]) one.reload();
  }

  async function change(act: "resend" | "drop", letters: DeadLetter[]) {
    setIsBusy(true);
    try {
      const body = { sequences: letters.map((letter) => letter.sequence) };
      await request(`${EVENTS}/dead/${act}`, { method: "POST", body });
      reload();
    } catch (error) {
      setFailure(problemOf(error));
    } finally {
      setIsBusy(false);
    }
  }

  return (
    <SlotPage slot="events" className="events" problem={problem} loaded={events.value !== null} onRetry={reload}>
      {delivery.value && (
        <section className="card events-delivery" aria-label="Delivery">
          <p role="status">{visibleText(deliveryText(delivery.value))}</p>
          {delivery.value.error !== null && <p className="problem-text">{visibleText(delivery.value.error)}</p>}
          {delivery.value.dropped > 0 && (
            <p className="problem-text">{delivery.value.dropped} events were dropped, because the log was full.</p>
          )}
        </section>
      )}
      {dead.value && dead.value.letters.length > 0 && (
        <DeadLetters letters={dead.value.letters} busy={isBusy} onChange={(act, chosen) => void change(act, chosen)} />
      )}
      <section aria-labelledby="events-newest">
        <h2 id="events-newest">Newest</h2>
        {events.value === null && !problem && (
          <p className="quiet" role="status">
            Loading…
          </p>
        )}
        {events.value?.events.length === 0 && <p className="empty">No events yet.</p>}
        {/* The page scrolls, and keys need something to begin at. */}
        <ul className="events-list" tabIndex={0} aria-labelledby="events-newest">
          {newestFirst(events.value?.events ?? []).map((event) => (
            <li key={event.sequence} className="card">
              <p className="events-type">{visibleText(shortType(event.type))}</p>
              <p className="quiet events-facts">
                <time dateTime={event.time}>{formatDateTime(Date.parse(event.time) / 1000)}</time>
                <span>{visibleText(event.actor)}</span>
                {event.subject && <span>{visibleText(event.subject)}</span>}
              </p>
              <code className="events-data">{visibleText(dataText(event))}</code>
            </li>
          ))}
        </ul>
      </section>
    </SlotPage>
  );
}

interface DeadLettersProps {
  letters: DeadLetter[];
  busy: boolean;
  onChange: (act: "resend" | "drop", letters: DeadLetter[]) => void;
}

function DeadLetters({ letters, busy, onChange }: DeadLettersProps) {
  return (
    <section aria-labelledby="events-dead">
      <h2 id="events-dead">Not delivered</h2>
      <ul className="events-list">
        {letters.map((letter) => (
          <li key={letter.sequence} className="card">
            <p className="events-type">{visibleText(shortType(letter.event.type))}</p>
            <p className="quiet events-facts">
              <time dateTime={letter.event.time}>{formatDateTime(Date.parse(letter.event.time) / 1000)}</time>
              {letter.event.subject && <span>{visibleText(letter.event.subject)}</span>}
            </p>
            <p className="problem-text">{letter.again ? "It is being sent again." : visibleText(letter.error)}</p>
            <div className="events-actions">
              <button
                type="button"
                className="small"
                disabled={busy || letter.again}
                aria-label={`Send again: event ${letter.sequence}`}
                onClick={() => onChange("resend", [letter])}
              >
                Send again
              </button>
              <ConfirmButton
                label="Remove"
                confirmLabel="Remove?"
                spoken={`Remove: event ${letter.sequence}`}
                disabled={busy}
                onConfirm={() => onChange("drop", [letter])}
              />
            </div>
          </li>
        ))}
      </ul>
      <button type="button" disabled={busy} onClick={() => onChange("resend", letters)}>
        Send all again
      </button>
    </section>
  );
}
