"""Events are told once each, in order, to readers and to real sinks that fail in every way."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import nats as nats_client
import pytest
from click.testing import CliRunner
from nats.aio.client import Client
from nats.js.errors import NotFoundError
from tests.slots.conftest import SlotBench
from tests.support.condition import until, wait_until
from tests.support.nats import TOKEN, NatsServer
from tests.support.webhook import SECRET, WebhookReceiver, running_webhook

from freehold.cli.main import freehold_command
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import Slot, SlotCaller, SlotError
from freehold.slots.events import delivery as event_delivery
from freehold.slots.events import log as log_files
from freehold.slots.events.contract import (
    AwaitEvents,
    DropDeadLetters,
    ExportEvents,
    GetDelivery,
    ImportEvents,
    ListDeadLetters,
    PublishEvent,
    ReadEvents,
    ResendDeadLetters,
)
from freehold.slots.events.log import EventLog
from freehold.slots.events.store import EventStore
from freehold.slots.events.webhook import Webhook
from freehold.slots.host import make_slot
from freehold.slots.settings import ExternalSettings

pytestmark = pytest.mark.shared_processes
OWNER = SlotCaller("owner")
TYPE = "com.example.told"


@pytest.fixture
def webhook() -> Iterator[WebhookReceiver]:
    with running_webhook() as receiver:
        yield receiver


@contextlib.asynccontextmanager
async def running(slot: Slot) -> AsyncIterator[Slot]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(slot.run())
        try:
            await until(lambda: slot.status.state != "starting")
            yield slot
        finally:
            task.cancel()


def webhook_slot(bench: SlotBench, receiver: WebhookReceiver, **more: str) -> Slot:
    settings = {"url": receiver.url, "secret": "env:HOOK", "kinds": "test.*", **more}
    place = type(bench.place)(bench.place.home, bench.place.timeline, bench.place.find_secret, {"HOOK": SECRET})
    return make_slot("events", SlotSection(mode="external", settings=settings), place)


@pytest.fixture
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_delivery, "MIN_DELAY", 0.01)
    monkeypatch.setattr(event_delivery, "MAX_DELAY", 0.05)


async def publish(slot: Slot, *numbers: int) -> None:
    for number in numbers:
        await slot.call(PublishEvent(TYPE, {"n": number}, f"thing/{number % 3}"), OWNER)


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["data"]["n"] for event in events]


async def status(slot: Slot) -> Any:
    return await slot.call(GetDelivery(), OWNER)


# Reading


async def test_what_was_published_is_read_at_once_by_every_process(bench: SlotBench) -> None:
    async with bench.open("events", "local") as first, bench.open("events", "local") as second:
        made = await first.call(PublishEvent(TYPE, {"n": 1}, "thing/1"), SlotCaller("token:script"))
        page = await second.call(ReadEvents(), OWNER)
        (event,) = page.events
        assert (event.id, event.type, event.subject, event.actor) == (made.id, TYPE, "thing/1", "token:script")
        assert event.data == {"n": 1}
        assert (await second.call(ReadEvents(after=page.cursor), OWNER)).events == ()
        await publish(first, *range(5))
        assert [e.sequence for e in (await second.call(ReadEvents(after=page.cursor), OWNER)).events] == [2, 3, 4, 5, 6]
        newest = await second.call(ReadEvents(limit=2, newest=True), OWNER)
        assert [event.sequence for event in newest.events] == [5, 6]


async def test_events_of_the_timeline_are_told_and_the_own_bookkeeping_is_not(bench: SlotBench) -> None:
    async with bench.open("events", "local") as slot:
        bench.place.timeline.append("history.undone", {"entry": 3})
        bench.place.timeline.append("events.dropped", {"count": 1})
        found = (await slot.call(ReadEvents(types=("org.freehold.*",)), OWNER)).events
        assert [event.type for event in found] == ["org.freehold.history.undone"]


async def test_a_reader_waits_for_the_next_event(bench: SlotBench) -> None:
    async with running(bench.make("events", "local")) as slot:
        waiting = asyncio.ensure_future(slot.call(AwaitEvents(0, 5.0), OWNER))
        await publish(slot, 1)
        assert (await waiting).last == 1
        assert (await slot.call(AwaitEvents(1, 0.0), OWNER)).last == 1
        again = asyncio.ensure_future(slot.call(AwaitEvents(1, 5.0), OWNER))
        bench.place.timeline.append("test.happened")
        assert (await again).last == 2


@pytest.mark.parametrize(
    "wrong",
    [
        PublishEvent("org.freehold.history.undone", {}),
        PublishEvent("Org.Freehold.history.undone", {}),
        PublishEvent("org.freehold", {}),
        PublishEvent("told", {}),
        PublishEvent("com.example.a b", {}),
        PublishEvent("com." + "x" * 300, {}),
        PublishEvent(TYPE, {}, ""),
        PublishEvent(TYPE, {}, "a\nb"),
        PublishEvent(TYPE, {"x": "y" * 70_000}),
        PublishEvent(TYPE, {"x": float("nan")}),
        ReadEvents(limit=0),
        ReadEvents(after=-1),
        AwaitEvents(0, 1000.0),
        ExportEvents(cursor="x"),
        ImportEvents(({"id": "1"},)),
        ImportEvents(({"id": "1", "specversion": "1.0", "source": "\n", "type": "a.b", "time": "t"},)),
    ],
    ids=str,
)
async def test_what_is_wrong_is_refused_with_its_name(bench: SlotBench, wrong: Any) -> None:
    async with bench.open("events", "local") as slot:
        with pytest.raises(SlotError) as refused:
            await slot.call(wrong, OWNER)
        assert refused.value.problem == "invalid"


async def test_many_publishers_at_once_lose_nothing_and_each_keeps_its_order(bench: SlotBench) -> None:
    async with bench.open("events", "local") as slot:

        async def one(name: int) -> None:
            for number in range(10):
                await slot.call(PublishEvent(f"com.example.p{name}", {"n": number}, key=f"{name}-{number}"), OWNER)

        await asyncio.gather(*(one(name) for name in range(12)))
        events = (await slot.call(ReadEvents(limit=500), OWNER)).events
        assert len(events) == 120
        for name in range(12):
            assert [event.data["n"] for event in events if event.type == f"com.example.p{name}"] == list(range(10))
    assert bench.place.timeline.verify() == []


async def test_a_refused_publication_does_not_take_others_of_its_transaction_with_it(bench: SlotBench) -> None:
    async with bench.open("events", "local") as slot:
        wanted = [PublishEvent(TYPE, {"n": n}, key="same" if n % 2 else f"k{n}") for n in range(20)]
        outcomes = await asyncio.gather(*(slot.call(one, OWNER) for one in wanted), return_exceptions=True)
        kept = [event.data["n"] for event in (await slot.call(ReadEvents(limit=500), OWNER)).events]
        refused = [one for one in outcomes if isinstance(one, SlotError)]
        assert len(kept) == 11
        assert len(refused) == 9
        assert {one.problem for one in refused} == {"conflict"}
    assert bench.place.timeline.verify() == []


async def test_events_of_another_log_are_imported_once(bench: SlotBench) -> None:
    records = tuple(
        {"specversion": "1.0", "id": str(n), "source": "urn:elsewhere", "type": TYPE, "time": "t", "data": {"n": n}}
        for n in range(3)
    )
    async with bench.open("events", "local") as slot:
        assert (await slot.call(ImportEvents(records), OWNER)).created == 3
        assert (await slot.call(ImportEvents(records), OWNER)).kept == 3
        await publish(slot, 9)
        found = (await slot.call(ExportEvents(), OWNER)).records
        assert [one["source"] for one in found][:3] == ["urn:elsewhere"] * 3
        assert len(found) == 4


async def test_a_page_of_an_import_reads_only_what_the_log_has_gained(
    bench: SlotBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def page_of(first: int) -> tuple[dict[str, Any], ...]:
        numbers = range(first, first + 10)
        return tuple(
            {"specversion": "1.0", "id": str(n), "source": "urn:elsewhere", "type": TYPE, "time": "t"} for n in numbers
        )

    def read(self: EventLog, after: int, limit: int, types: Sequence[str] = ()) -> Any:
        part = original(self, after, limit, types)
        looked_at.extend(event.sequence for event in part.events)
        return part

    looked_at: list[int] = []
    async with bench.open("events", "local") as slot:
        await publish(slot, *range(30))
        await slot.call(ReadEvents(), OWNER)
        original = EventLog.read
        monkeypatch.setattr(EventLog, "read", read)
        for first in range(0, 60, 10):
            assert (await slot.call(ImportEvents(page_of(first)), OWNER)).created == 10
        assert (await slot.call(ImportEvents(page_of(20)), OWNER)).kept == 10
        # Once to know it, and once to find the end of what the timeline has told.
        assert max(Counter(looked_at).values()) <= 2


async def test_an_event_that_the_log_has_no_longer_can_be_imported_again(
    bench: SlotBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "SEGMENT_BYTES", 2_000)
    monkeypatch.setattr(log_files, "MIN_BYTES", 4_000)
    records = tuple(
        {"specversion": "1.0", "id": str(n), "source": "urn:x", "type": TYPE, "time": "t", "data": {"x": "y" * 500}}
        for n in range(20)
    )
    store = EventStore(bench.place.home.root / "events", bench.place.timeline, ("test.*",), 4_000)
    await store.connect()
    assert (await store.call(ImportEvents(records), OWNER)).created == 20
    again = await store.call(ImportEvents(records), OWNER)
    assert (again.created > 0, again.kept > 0) == (True, True)
    await store.close()


# Webhooks


async def test_a_webhook_gets_each_event_signed_and_in_order(
    bench: SlotBench, webhook: WebhookReceiver, no_delay: None
) -> None:
    async with running(webhook_slot(bench, webhook)) as slot:
        await publish(slot, *range(5))
        bench.place.timeline.append("test.happened", {"session": "s"})
        bench.place.timeline.append("other.happened")
        await until(lambda: len(webhook.received) == 6)
        assert numbers(webhook.received[:5]) == [0, 1, 2, 3, 4]
        assert webhook.received[5]["type"] == "org.freehold.test.happened"
        assert webhook.forged == 0
        await until(lambda: is_done(slot))
        assert (await status(slot)).state == "ok"


async def is_done(slot: Slot) -> bool:
    return bool((await status(slot)).waiting == 0)


async def test_a_signature_with_another_secret_is_refused_by_the_receiver(
    bench: SlotBench, webhook: WebhookReceiver, no_delay: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_delivery, "MAX_ANSWERED", 10**6)
    place = type(bench.place)(
        bench.place.home, bench.place.timeline, bench.place.find_secret, {"HOOK": "whsec_" + "A" * 43 + "="}
    )
    settings = {"url": webhook.url, "secret": "env:HOOK", "kinds": "test.*"}
    async with running(make_slot("events", SlotSection(mode="external", settings=settings), place)) as slot:
        await publish(slot, 1)
        await until(lambda: webhook.forged > 0)
        assert webhook.received == []
        assert (await status(slot)).waiting == 1


@pytest.mark.parametrize("failure", ["gone", "busy"])
async def test_a_sink_that_was_away_gets_everything_in_order_and_the_owner_is_told_once(
    bench: SlotBench, webhook: WebhookReceiver, no_delay: None, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_delivery, "MAX_ANSWERED", 10**6)
    async with running(webhook_slot(bench, webhook)) as slot:
        await publish(slot, 0)
        await until(lambda: len(webhook.received) == 1)
        if failure == "gone":
            webhook.stop()
        else:
            webhook.status = 503
        await publish(slot, *range(1, 60))
        await until(lambda: bool(bench.place.timeline.read(kinds=["events.sink_lost"])))
        found = await slot.probe()
        assert found is not None
        assert found.state == "degraded"
        # What is told meanwhile is kept, and readers get it.
        assert len((await slot.call(ReadEvents(limit=100), OWNER)).events) == 60
        if failure == "gone":
            webhook.start()
        else:
            webhook.status = 200
        await until(lambda: len(set(numbers(webhook.received))) == 60)
        assert list(dict.fromkeys(numbers(webhook.received))) == list(range(60))
        await until(lambda: len(bench.place.timeline.read(kinds=["events.sink_recovered"])) == 1)
        assert len(bench.place.timeline.read(kinds=["events.sink_lost"])) == 1


async def test_an_event_that_the_sink_refuses_becomes_a_dead_letter_and_can_be_sent_again(
    bench: SlotBench, webhook: WebhookReceiver, no_delay: None
) -> None:
    webhook.refused_types = frozenset({"com.example.bad"})
    async with running(webhook_slot(bench, webhook)) as slot:
        await publish(slot, 1)
        await slot.call(PublishEvent("com.example.bad", {"n": 2}), OWNER)
        await publish(slot, 3)
        await until(lambda: numbers(webhook.received) == [1, 3])
        (letter,) = (await slot.call(ListDeadLetters(), OWNER)).letters
        assert (letter.sequence, letter.event.data, letter.error) == (
            2,
            {"n": 2},
            "it answered 422 Unprocessable Entity",
        )
        assert len(bench.place.timeline.read(kinds=["events.dead_letter"])) == 1
        with pytest.raises(SlotError) as missing:
            await slot.call(ResendDeadLetters((99,)), OWNER)
        assert missing.value.problem == "not-found"
        await slot.call(ResendDeadLetters(), OWNER)
        await until(lambda: len(bench.place.timeline.read(kinds=["events.dead_letter"])) == 2)
        webhook.refused_types = frozenset()
        assert (await slot.call(ResendDeadLetters((2,)), OWNER)).count == 1
        await until(lambda: numbers(webhook.received) == [1, 3, 2])

        async def none_left() -> bool:
            return (await slot.call(ListDeadLetters(), OWNER)).letters == ()

        await until(none_left)
        assert (await slot.call(DropDeadLetters(), OWNER)).count == 0


async def test_a_full_outbox_drops_the_oldest_and_tells_how_many(
    bench: SlotBench, webhook: WebhookReceiver, no_delay: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from freehold.slots.events import log as event_log

    monkeypatch.setattr(event_log, "SEGMENT_BYTES", 3000)
    monkeypatch.setattr(event_log, "MIN_BYTES", 1)
    slot = webhook_slot(bench, webhook)
    slot._inner._log._max_bytes = 9000  # type: ignore[attr-defined]
    webhook.stop()
    async with running(slot):
        await publish(slot, *range(60))
        await slot.call(ReadEvents(), OWNER)
        found = await slot.probe()
        assert found is not None
        assert "nearly full" in (found.error or "")
        webhook.start()
        await until(lambda: 59 in numbers(webhook.received))
        dropped = sum(int(str(e.data["count"])) for e in bench.place.timeline.read(kinds=["events.dropped"]))
        got = list(dict.fromkeys(numbers(webhook.received)))
        assert dropped > 0
        assert (await status(slot)).dropped == dropped
        # The first may have been on its way when it was dropped.
        assert got[-1] == 59
        assert 60 - len(got) in (dropped, dropped - 1)


PROGRAM = """\
import asyncio, json, sys
from pathlib import Path
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import SlotCaller
from freehold.slots.events.contract import PublishEvent
from freehold.slots.host import SlotPlace, make_slot
from freehold.timeline import Timeline

folder, url, secret, count = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])

async def main():
    with Timeline(folder / "timeline.db") as timeline:
        place = SlotPlace(Home(folder, folder / "run"), timeline, None, {"HOOK": secret})
        settings = {"url": url, "secret": "env:HOOK", "kinds": "test.*"}
        slot = make_slot("events", SlotSection(mode="external", settings=settings), place)
        async with asyncio.TaskGroup() as group:
            group.create_task(slot.run())
            while slot.status.state != "ok":
                await asyncio.sleep(0.01)
            for number in range(count):
                await slot.call(PublishEvent("com.example.told", {"n": number}, key=str(number)), SlotCaller("owner"))
                print(number, flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""


def start(folder: Path, receiver: WebhookReceiver, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(folder), receiver.url, SECRET, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def end(program: subprocess.Popen[str]) -> None:
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    assert program.stdout is not None
    program.stdout.close()


def test_an_outbox_whose_process_is_killed_at_any_time_delivers_what_was_accepted(
    tmp_path: Path, webhook: WebhookReceiver
) -> None:
    """Killed three times, with events on the way; each event that was accepted arrives, in order."""
    accepted = 0
    for kill_after in (5, 20, 35):
        program = start(tmp_path, webhook, 60)
        assert program.stdout is not None
        for line in program.stdout:
            accepted = max(accepted, int(line) + 1)
            if int(line) >= kill_after:
                break
        end(program)
    program = start(tmp_path, webhook, 60)
    try:
        wait_until(lambda: len(set(numbers(webhook.received))) == 60)
    finally:
        end(program)
    assert accepted > 35
    assert list(dict.fromkeys(numbers(webhook.received))) == list(range(60))
    # A repetition has the id of the first, so that a receiver recognises it.
    assert len(set(webhook.ids)) == 60


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"url": "https://example.com/x", "secret": "env:HOOK"}, "kinds is missing"),
        ({"url": "https://example.com/x", "kinds": "*"}, "secret is missing"),
        ({"url": "http://example.com/x", "kinds": "*", "secret": "env:HOOK"}, "not encrypted"),
        ({"url": "https://example.com/x", "kinds": "*", "secret": "env:SHORT"}, "24 to 64 bytes"),
        ({"url": "https://u:p@example.com/x", "kinds": "*", "secret": "env:HOOK"}, "not an address of a webhook"),
        ({"url": "https://example.com/x", "kinds": "*", "secret": "env:HOOK", "colour": "red"}, "has no colour"),
        ({"url": "https://example.com/x", "kinds": "*", "secret": "env:HOOK", "max_mb": "1"}, "max_mb"),
        ({"url": "nats://example.com", "kinds": "*"}, "not encrypted"),
        ({"url": "nats://a:b@127.0.0.1", "kinds": "*"}, "not an address of a NATS server"),
        ({"url": "nats://127.0.0.1", "kinds": "*", "stream": "a.b"}, "plain names"),
        ({"url": "ftp://127.0.0.1", "kinds": "*"}, "not an address of a NATS server"),
        ({"kinds": "*"}, "url is missing"),
    ],
    ids=str,
)
def test_wrong_settings_of_a_sink_are_named(bench: SlotBench, settings: dict[str, str], words: str) -> None:
    from freehold.slots.events.external import make_external

    environ = {"HOOK": SECRET, "SHORT": "whsec_AAAA"}
    with pytest.raises(SlotError) as refused:
        make_external(bench.place, ExternalSettings("events", settings, environ, bench.place.find_secret))
    assert words in refused.value.message


async def test_a_webhook_that_answers_without_end_does_not_hold_the_outbox(bench: SlotBench) -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n")
        with contextlib.suppress(OSError):
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        settings = ExternalSettings(
            "events", {"url": url, "secret": "env:HOOK"}, {"HOOK": SECRET}, bench.place.find_secret
        )
        sink = Webhook(settings)
        from freehold.slots.events.cloud_event import CloudEvent

        await sink.send(CloudEvent(1, "1", "urn:x", TYPE, "t", "owner", {}))
        await sink.close()


# NATS


async def read_stream(server: NatsServer, stream: str, count: int) -> list[dict[str, Any]]:
    client = await nats_client.connect(server.url, token=TOKEN)

    async def is_made() -> bool:
        try:
            return bool(await client.jetstream().stream_info(stream))
        except NotFoundError:
            return False

    try:
        await until(is_made)
        subscription = await client.jetstream().pull_subscribe(f"{stream}.>", stream=stream)
        found: list[dict[str, Any]] = []
        while len(found) < count:
            for message in await subscription.fetch(count - len(found), timeout=30):
                found.append({**json.loads(message.data), "nats": message.subject})
                await message.ack()
        return found
    finally:
        await client.close()


async def test_nats_stores_each_event_once_and_in_order(bench: SlotBench, nats: NatsServer, no_delay: None) -> None:
    async with running(bench.make("events", "external")) as slot:
        await publish(slot, *range(5))
        bench.place.timeline.append("test.happened", {"session": "s"})
        found = await read_stream(nats, bench.unique, 6)
        assert numbers(found[:5]) == [0, 1, 2, 3, 4]
        assert found[0]["nats"] == f"{bench.unique}.published.{TYPE}"
        assert found[5]["nats"] == f"{bench.unique}.test.happened"
        await until(lambda: is_done(slot))


async def test_no_type_that_a_program_chooses_looks_like_an_event_of_freehold(
    bench: SlotBench, nats: NatsServer, no_delay: None
) -> None:
    """Its subject at NATS is another one, and it can neither publish nor import an own type."""
    program = SlotCaller("token:x")
    async with running(bench.make("events", "external")) as slot:
        bench.place.timeline.append("test.happened", {"session": "s"})
        await slot.call(PublishEvent("test.happened", {}), program)
        own, chosen = await read_stream(nats, bench.unique, 2)
        assert (own["nats"], own["type"]) == (f"{bench.unique}.test.happened", "org.freehold.test.happened")
        assert (chosen["nats"], chosen["type"]) == (f"{bench.unique}.published.test.happened", "test.happened")
        record = {"specversion": "1.0", "id": "9", "source": own["source"], "type": own["type"], "time": "t"}
        with pytest.raises(SlotError, match="Only the owner imports"):
            await slot.call(ImportEvents((record,)), program)
        await until(lambda: is_done(slot))


@pytest.mark.parametrize("failure", ["killed", "hung"])
async def test_a_nats_server_that_was_killed_or_hung_gets_everything_once(
    bench: SlotBench, nats: NatsServer, no_delay: None, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from freehold.slots.events import jetstream

    monkeypatch.setattr(jetstream, "TIMEOUT", 1.0)
    async with running(bench.make("events", "external")) as slot:
        await publish(slot, 0)
        await until(lambda: is_done(slot))
        if failure == "killed":
            nats.kill()
        else:
            nats.hang()
        try:
            await publish(slot, *range(1, 30))
            await until(lambda: bool(bench.place.timeline.read(kinds=["events.sink_lost"])))
            assert (await status(slot)).state == "away"
        finally:
            if failure == "killed":
                nats.start()
            else:
                nats.resume()
        await until(lambda: is_done(slot))
        assert numbers(await read_stream(nats, bench.unique, 30)) == list(range(30))


async def test_a_full_stream_makes_events_wait_and_loses_none(
    bench: SlotBench, nats: NatsServer, no_delay: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_delivery, "MAX_ANSWERED", 10**6)
    client = await nats_client.connect(nats.url, token=TOKEN)
    try:
        stream = client.jetstream()
        from nats.js.api import DiscardPolicy

        made = await stream.add_stream(
            name=bench.unique, subjects=[f"{bench.unique}.>"], max_msgs=3, discard=DiscardPolicy.NEW
        )
        async with running(bench.make("events", "external")) as slot:
            await publish(slot, *range(8))
            await until(lambda: bool(bench.place.timeline.read(kinds=["events.sink_lost"])))
            assert (await stream.stream_info(bench.unique)).state.messages == 3
            made.config.max_msgs = 100
            await stream.update_stream(made.config)
            await until(lambda: is_done(slot))
            assert numbers(await read_stream(nats, bench.unique, 8)) == list(range(8))
    finally:
        await client.close()


async def test_an_event_that_is_too_large_for_the_stream_is_a_dead_letter(
    bench: SlotBench, nats: NatsServer, no_delay: None
) -> None:
    client = await nats_client.connect(nats.url, token=TOKEN)
    try:
        await client.jetstream().add_stream(name=bench.unique, subjects=[f"{bench.unique}.>"], max_msg_size=2000)
        async with running(bench.make("events", "external")) as slot:
            await slot.call(PublishEvent(TYPE, {"n": 0, "x": "y" * 5000}), OWNER)
            await publish(slot, 1)
            await until(lambda: is_done(slot))
            (letter,) = (await slot.call(ListDeadLetters(), OWNER)).letters
            assert "larger" in letter.error
            assert numbers(await read_stream(nats, bench.unique, 1)) == [1]
    finally:
        await client.close()


async def test_a_wrong_token_is_told_and_nothing_is_lost(bench: SlotBench, nats: NatsServer, no_delay: None) -> None:
    place = type(bench.place)(bench.place.home, bench.place.timeline, bench.place.find_secret, {"NATS_TOKEN": "wrong"})
    section = SlotSection(mode="external", settings=bench.settings_of("events"))
    async with running(make_slot("events", section, place)) as slot:
        await publish(slot, 1)
        await until(lambda: bool(bench.place.timeline.read(kinds=["events.sink_lost"])))
        found = await status(slot)
        assert "wrong" not in (found.error or "")
        assert found.waiting == 1
    async with running(bench.make("events", "external")) as slot:
        await until(lambda: is_done(slot))
        assert numbers(await read_stream(nats, bench.unique, 1)) == [1]


async def test_a_cancellation_that_the_client_of_nats_swallows_is_not_lost(
    bench: SlotBench, nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`asyncio.wait_for`, by which that client reads, loses a cancellation in the moment in which an answer comes."""
    begun = asyncio.Event()

    async def connect(*_: object, **__: object) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise OSError("refused") from None

    monkeypatch.setattr(Client, "connect", connect)
    slot = bench.make("events", "external")
    task = asyncio.ensure_future(slot.run())
    await until(lambda: slot.status.state != "starting")
    await publish(slot, 1)
    await begun.wait()
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=60)
    assert done == {task}


# A home


def freehold(home: Path, *words: str) -> str:
    done = CliRunner().invoke(freehold_command, [*words, "--home", str(home)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_events_move_between_here_and_a_sink_and_a_sink_can_be_tried(
    bench: SlotBench, nats: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NATS_TOKEN", TOKEN)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in bench.settings_of("events").items())
    (home / "freehold.toml").write_text(f'[slots.events]\nmode = "local"\n[slots.events.settings]\n{settings}\n')
    freehold(home, "events", "publish", TYPE, "--data", '{"n": 1}')
    assert json.loads(freehold(home, "events", "--json"))["data"] == {"n": 1}
    assert "sent nowhere" in freehold(home, "events", "delivery")
    assert "no dead letters" in freehold(home, "events", "dead")
    before = freehold(home, "slots", "export", "events")
    assert freehold(home, "slots", "try", "events").count("ok  ") == 4
    freehold(home, "slots", "move", "events", "--to", "external")
    assert freehold(home, "slots", "export", "events") == before
    freehold(home, "slots", "move", "events", "--to", "local")
    assert freehold(home, "slots", "export", "events") == before
