"""The calls of the events slot that its tables answer: publishing, and dead letters."""

import json
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from freehold.slots.contract import CallContext, SlotCall
from freehold.slots.errors import SlotError
from freehold.slots.events.cloud_event import OWN_TYPES, is_own_type, read_event
from freehold.slots.events.contract import (
    MAX_CHOSEN,
    MAX_DATA,
    MAX_PAGE,
    MAX_SUBJECT,
    MAX_TYPE,
    DeadLetter,
    DeadLetterChange,
    DeadLetterPage,
    DropDeadLetters,
    ListDeadLetters,
    PublishedEvent,
    PublishEvent,
    ResendDeadLetters,
)
from freehold.slots.statement import Steps, ask, places

_TYPE = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]*(\.[a-zA-Z0-9_-]+)+", re.ASCII)


def publish_event(request: PublishEvent, context: CallContext) -> Steps[PublishedEvent]:
    """The content waits in a table. The log gets it in the order of the timeline, whatever happens between."""
    text = check_event(request.type, request.subject, request.data)
    id = secrets.token_hex(12)
    yield from ask(
        "INSERT INTO events_content (id, type, subject, data, at) VALUES (?, ?, ?, ?, ?)",
        *(id, request.type, request.subject, text, context.now),
    )
    return PublishedEvent(id, request.type, request.subject, context.now)


def check_event(type: str, subject: str | None, data: Mapping[str, object]) -> str:
    """The text of the data. Raises `events.invalid`."""
    if len(type) > MAX_TYPE or _TYPE.fullmatch(type) is None:
        raise invalid(
            f"{type[:80]!a} is not a type of an event", "Use words with dots, such as com.example.report.done"
        )
    if is_own_type(type):
        raise invalid(f"Types that begin with {OWN_TYPES} are Freehold's own", "Use a name of yours in front")
    if subject is not None and (not 0 < len(subject) <= MAX_SUBJECT or not subject.isprintable()):
        raise invalid(f"A subject has 1 to {MAX_SUBJECT} printable characters")
    try:
        text = json.dumps(data, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise invalid("The data cannot be written as JSON") from None
    if len(text) > MAX_DATA:
        raise invalid(f"The data is {len(text)} bytes long; an event has at most {MAX_DATA}")
    return text


def list_dead_letters(request: ListDeadLetters, _context: CallContext) -> Steps[DeadLetterPage]:
    check_limit(request.limit)
    rows = yield from ask(
        "SELECT sequence, event, at, error, again FROM events_dead WHERE sequence > ? ORDER BY sequence LIMIT ?",
        *(request.after, request.limit + 1),
    )
    letters = tuple(
        DeadLetter(row[0], read_event(json.loads(row[1])), row[2], row[3], bool(row[4]))
        for row in rows[: request.limit]
    )
    return DeadLetterPage(letters, letters[-1].sequence if len(rows) > request.limit else None)


def resend_dead_letters(request: ResendDeadLetters, _context: CallContext) -> Steps[DeadLetterChange]:
    where, values = _chosen(request.sequences)
    rows = yield from ask(f"UPDATE events_dead SET again = 1 WHERE {where} RETURNING sequence", *values)  # noqa: S608
    return DeadLetterChange(_require_all(request.sequences, len(rows)))


def drop_dead_letters(request: DropDeadLetters, _context: CallContext) -> Steps[DeadLetterChange]:
    where, values = _chosen(request.sequences)
    rows = yield from ask(f"DELETE FROM events_dead WHERE {where} RETURNING sequence", *values)  # noqa: S608
    return DeadLetterChange(_require_all(request.sequences, len(rows)))


def _chosen(sequences: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    if len(sequences) > MAX_CHOSEN:
        raise invalid(f"One call names at most {MAX_CHOSEN} dead letters", "Name none for all of them")
    return (f"sequence IN {places(sequences)}", sequences) if sequences else ("1 = 1", ())


def _require_all(sequences: tuple[int, ...], found: int) -> int:
    if found < len(set(sequences)):
        raise SlotError(
            "events",
            "not-found",
            f"{len(set(sequences)) - found} of these dead letters do not exist",
            hint="freehold events dead lists them",
        )
    return found


def check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_PAGE:
        raise invalid(f"limit is {limit}; it must be between 1 and {MAX_PAGE}")


def invalid(message: str, hint: str = "") -> SlotError:
    return SlotError("events", "invalid", message, hint=hint)


STEPS_OF_CALL: dict[type[SlotCall[Any]], Callable[[Any, CallContext], Steps[Any]]] = {
    PublishEvent: publish_event,
    ListDeadLetters: list_dead_letters,
    ResendDeadLetters: resend_dead_letters,
    DropDeadLetters: drop_dead_letters,
}
