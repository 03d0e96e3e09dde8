"""The events slot of this home: the log, the tables beside it, and the sink if there is one."""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from freehold.errors import FreeholdError
from freehold.slots.answers import expect_answer
from freehold.slots.contract import CallContext, CleanLeaving, Record, Reply, SlotCall, SlotCaller
from freehold.slots.errors import SlotError, slot_unavailable
from freehold.slots.events.calls import STEPS_OF_CALL, check_limit, invalid
from freehold.slots.events.cloud_event import OWN_TYPES, CloudEvent, is_own_type, read_event
from freehold.slots.events.contract import (
    CONTRACT,
    MAX_RECORDS,
    MAX_TYPES,
    MAX_WAIT,
    AwaitEvents,
    DeliveryStatus,
    EventImport,
    EventMark,
    EventRecords,
    ExportEvents,
    GetDelivery,
    ImportEvents,
    LogPage,
    ReadEvents,
    ResendDeadLetters,
)
from freehold.slots.events.delivery import SinkDelivery
from freehold.slots.events.known import KnownEvents
from freehold.slots.events.log import MAX_LOOKED_AT, EventLog
from freehold.slots.events.pump import EventPump
from freehold.slots.events.schema import STEPS
from freehold.slots.events.sink import EventSink
from freehold.slots.statement import Steps
from freehold.slots.timeline_tables import TimelineTables
from freehold.strict_json import WrongShape
from freehold.timeline import Timeline
from freehold.timeline.wakeup import Wakeup

LOOK_AGAIN = 0.1
"""Seconds after which a process that does not pump in the background looks for new events."""
UNREAD_PAUSE = 0.1
FORGET_INTERVAL = 5.0
RETRY_DELAY = 1.0

log = logging.getLogger("freehold.slots")


class EventStore:
    """Calls are answered from the log, also while the sink is away. `work` pumps and delivers in the background."""

    records_events = True

    def __init__(
        self, folder: Path, timeline: Timeline, kinds: Sequence[str], max_bytes: int, sink: EventSink | None = None
    ) -> None:
        self.kind = "local" if sink is None else sink.kind
        self._timeline = timeline
        self._tables = TimelineTables(CONTRACT, timeline, STEPS, STEPS_OF_CALL)
        self._log = EventLog(folder, max_bytes)
        self._pump = EventPump(folder, self._log, timeline, kinds)
        self._known = KnownEvents()
        self._threads: ThreadPoolExecutor | None = None
        self._delivery = None if sink is None else SinkDelivery(sink, self._log, timeline, kinds, self._in_thread)
        self._connected = asyncio.Event()
        self._grown = asyncio.Event()
        self._is_pumping = False
        self._readers = 0
        """How many wait for the next event."""
        self._reader_came = asyncio.Event()

    def filter_by(self, clean: CleanLeaving) -> None:
        """The privacy filter, for what comes from the timeline."""
        self._pump.clean = clean

    async def connect(self) -> None:
        await self._tables.connect()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(4, "slot-events-log")
        await self._in_thread(self._prepare)
        self._connected.set()

    def _prepare(self) -> None:
        self._pump.prepare()
        if self._delivery is not None:
            self._delivery.begin_at(self._log.ends().last)
        elif self._timeline.query("SELECT name FROM events_sink"):
            # Nothing is sent now. A sink that is chosen later gets the events from then on.
            with self._timeline.transaction() as tx:
                tx.execute("DELETE FROM events_sink")

    async def health(self) -> str | None:
        await self._tables.health()
        await self._in_thread(self._log.ends)
        return None if self._delivery is None else await self._delivery.health()

    async def close(self) -> None:
        self._connected.clear()
        await self._tables.close()
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)
        if self._delivery is not None:
            await self._delivery.sink.close()

    async def work(self) -> None:
        """Until cancelled, whatever one round meets."""
        await self._connected.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self._follow))
            group.create_task(self._repeat(self._forget))
            if self._delivery is not None:
                group.create_task(self._repeat(self._delivery.run))

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        return cast("Reply", await self._answer(request, caller))

    async def _answer(self, request: SlotCall[Any], caller: SlotCaller) -> Any:
        match request:
            case ReadEvents():
                await self._catch_up()
                return await self._in_thread(self._read, request)
            case AwaitEvents():
                return await self._await(request)
            case GetDelivery():
                await self._catch_up()
                return await self._in_thread(self._status)
            case ExportEvents():
                await self._catch_up()
                return await self._in_thread(self._export, request)
            case ImportEvents():
                return await self._import(request, caller)
        reply = await self._tables.call(request, caller)
        if isinstance(request, ResendDeadLetters) and self._delivery is not None:
            self._delivery.retry_now()
        return reply

    # Reading

    def _read(self, request: ReadEvents) -> LogPage:
        check_limit(request.limit)
        if request.after < 0 or len(request.types) > MAX_TYPES:
            raise invalid(f"A cursor is not negative, and at most {MAX_TYPES} types are named")
        after = request.after
        if request.newest:
            after = self._find_newest(request)
        part = self._log.read(after, request.limit, request.types)
        return LogPage(part.events, part.reached, 0 if request.newest else part.missed)

    def _find_newest(self, request: ReadEvents) -> int:
        """The cursor after which the last `limit` wanted events are."""
        ends = self._log.ends()
        oldest = max(ends.first, ends.last - MAX_LOOKED_AT + 1)
        step, begin = request.limit, ends.last
        while begin >= oldest:
            begin = max(oldest - 1, begin - step)
            found = self._log.read(begin, MAX_LOOKED_AT, request.types).events
            if len(found) >= request.limit:
                return found[-request.limit].sequence - 1
            step *= 4
        return begin

    async def _await(self, request: AwaitEvents) -> EventMark:
        if not 0 <= request.seconds <= MAX_WAIT:
            raise invalid(f"seconds is {request.seconds:g}; it must be between 0 and {MAX_WAIT:g}")
        self._readers += 1
        self._reader_came.set()
        try:
            return await self._wait_grown(request)
        finally:
            self._readers -= 1

    async def _wait_grown(self, request: AwaitEvents) -> EventMark:
        end = asyncio.get_running_loop().time() + request.seconds
        while True:
            grown = self._grown
            await self._catch_up()
            last = (await self._in_thread(self._log.ends)).last
            left = end - asyncio.get_running_loop().time()
            if last > request.after or left <= 0:
                return EventMark(last)
            try:
                async with asyncio.timeout(left if self._is_pumping else min(left, LOOK_AGAIN)):
                    await grown.wait()
            except TimeoutError:
                pass

    def _status(self) -> DeliveryStatus:
        if self._delivery is not None:
            return self._delivery.status()
        return DeliveryStatus("", "", "none", 0.0, self._log.ends().last, 0, 0, 0, None)

    # Export and import

    def _export(self, request: ExportEvents) -> EventRecords:
        if not 1 <= request.limit <= MAX_RECORDS:
            raise invalid(f"limit is {request.limit}; it must be between 1 and {MAX_RECORDS}")
        given = request.cursor or "0"
        if not (given.isascii() and given.isdigit() and len(given) <= 16):
            raise invalid("The cursor of an export is a number")
        part = self._log.read(int(given), request.limit)
        records = tuple({**event.as_json(), "id": event.id} for event in part.events)
        more = part.reached < self._log.ends().last
        return EventRecords(records, str(part.reached) if more else None)

    async def _import(self, request: ImportEvents, caller: SlotCaller) -> EventImport:
        if len(request.records) > MAX_RECORDS:
            raise invalid(f"One import has at most {MAX_RECORDS} records")
        events = [_read_record(record) for record in request.records]
        if not caller.is_owner and any(is_own_type(event.type) for event in events):
            raise SlotError("events", "denied", f"Only the owner imports events of a type that begins with {OWN_TYPES}")
        done: EventImport | None = None
        if not await self._in_thread(self._has_answer, caller, request.key):
            done = await self._in_thread(self._add, events)
            self._note_grown()

        def answer(_request: ImportEvents, _context: CallContext) -> Steps[EventImport]:
            if done is None:
                yield from expect_answer("events")
            assert done is not None  # it was raised
            return done

        return await self._tables.carry_out(request, caller, answer)

    def _has_answer(self, caller: SlotCaller, key: str | None) -> bool:
        wanted = (caller.name, key)
        return bool(self._timeline.query("SELECT at FROM events_answer WHERE caller = ? AND key = ?", wanted))

    def _add(self, events: Sequence[CloudEvent]) -> EventImport:
        with self._log.locked():
            self._pump.run()
            self._known.follow(self._log)
            new = {(one.source, one.id): one for one in events if not self._known.has(one)}
            self._log.append(list(new.values()))
        return EventImport(len(new), len(events) - len(new))

    # In the background

    async def _repeat(self, work: Callable[[], Any]) -> None:
        while True:
            try:
                await work()
            except (FreeholdError, OSError) as error:
                # A full disk, for example. The health of the slot and of the disk show it.
                log.warning("events wait: %s", error)
            except Exception:
                # A bug here must end neither the other slots nor the gateway.
                log.exception("events wait because of an unexpected error")
            await asyncio.sleep(RETRY_DELAY)

    async def _follow(self) -> None:
        """Pumps soon after the timeline has grown; in a burst many events at once, so that publishers do not wait."""
        self._is_pumping = True
        try:
            with Wakeup(self._timeline.path) as wakeup:
                while True:
                    await self._catch_up()
                    await wakeup.pause()
                    await self._pause_unread()
        finally:
            self._is_pumping = False

    async def _pause_unread(self) -> None:
        """While nobody waits for the next event, more of them are brought at once. Who asks brings them itself."""
        if self._delivery is None and not self._readers:
            self._reader_came.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(UNREAD_PAUSE):
                    await self._reader_came.wait()

    async def _forget(self) -> None:
        await asyncio.sleep(FORGET_INTERVAL)
        await self._in_thread(self._pump.forget)
        await self._in_thread(self._known.rest)

    async def _catch_up(self) -> None:
        """Brings what is new into the log. Readers see what was published before they ask."""
        if await self._in_thread(self._pump.run):
            self._note_grown()

    def _note_grown(self) -> None:
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()
        if self._delivery is not None:
            self._delivery.wake()

    async def _in_thread(self, function: Callable[..., Any], *args: object) -> Any:
        if self._threads is None:
            raise slot_unavailable("events", "it is not connected")
        call = partial(contextvars.copy_context().run, partial(function, *args))
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except SlotError:
            raise
        except (FreeholdError, OSError) as error:
            message = (
                error.message if isinstance(error, FreeholdError) else f"The log of events: {error.strerror or error}"
            )
            raise SlotError("events", "unavailable", message) from error


def _read_record(record: Record) -> CloudEvent:
    """An event of another log, or of any program that writes CloudEvents. Raises `events.invalid`."""
    given: Mapping[str, object] = record
    try:
        filled = {"sequence": "0", "actor": "import", "data": {}, **given, "imported": True}
        event = read_event({name: value for name, value in filled.items() if name != "timelineseq"})
    except WrongShape as error:
        raise invalid(f"A record is not an event: {error}") from None
    for name, value in (("id", event.id), ("source", event.source), ("type", event.type)):
        if not 0 < len(value) <= 500 or not value.isprintable():
            raise invalid(f"{name} of a record has 1 to 500 printable characters")
    return event
