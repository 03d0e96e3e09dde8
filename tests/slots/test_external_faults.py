"""Every external, in front of a real server, with a network that fails in every way, and answers that are wrong or endless."""

import asyncio
import contextlib
import os
import resource
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.faults.test_keeper_disk import needs_root, small_disk
from tests.slots.conftest import SlotBench, Where
from tests.slots.memory.test_embedding import FakeProvider
from tests.slots.test_faults import running, told
from tests.support.condition import until
from tests.support.cut_proxy import CutProxy, Fault, running_proxy
from tests.support.full_disk import fill_disk
from tests.support.postgres import running_postgres
from tests.support.solid import SolidPod
from tests.support.webhook import SECRET, running_webhook

from freehold.manifest.sections.slots import SlotSection
from freehold.slots import Slot, SlotCall, SlotCaller, SlotError, SlotName
from freehold.slots import neighbour as neighbour_module
from freehold.slots import postgres_connections as postgres_module
from freehold.slots import slot as slot_module
from freehold.slots.beads.contract import CreateBead, ListBeads
from freehold.slots.contract import SlotWrite
from freehold.slots.events import delivery as event_delivery
from freehold.slots.events import jetstream
from freehold.slots.events import webhook as webhook_module
from freehold.slots.events.contract import GetDelivery, PublishEvent
from freehold.slots.host import make_slot
from freehold.slots.memory.contract import ListMemories, StoreMemory
from freehold.slots.orchestrator.contract import ListRuns, SpawnRun
from freehold.slots.pods import solid as solid_module
from freehold.slots.pods.contract import GetDocument, PutDocument

pytestmark = pytest.mark.shared_processes
OWNER = SlotCaller("owner")
MAX_MEMORY = 7_900
FAULTS: tuple[Fault, ...] = ("refused", "hung", "slow", "wrong", "cut", "torn")


@dataclass(frozen=True)
class External:
    """A slot behind a proxy: one read, one write, and how often that write has had its effect."""

    slot: Slot
    proxy: CutProxy
    read: Callable[[], SlotCall[Any]]
    write: Callable[[], SlotWrite[Any]]
    count: Callable[[], Awaitable[int]]


@contextlib.contextmanager
def make_external(bench: SlotBench, name: SlotName, tmp_path: Path, where: Where = "external") -> Iterator[External]:
    place = bench.place_of(name, where)
    settings = bench.neighbour_settings if where == "neighbour" else bench.settings_of(name)
    with contextlib.ExitStack() as stack:
        if name in ("beads", "memory") and where == "external":
            (tmp_path / "pg").mkdir()
            folder = bench.request.getfixturevalue("postgres").folder
            path = tmp_path / "pg" / ".s.PGSQL.5432"
            proxy = stack.enter_context(running_proxy(f"{folder}/.s.PGSQL.5432", path))
            settings["url"] = f"postgresql://owner@/postgres?host={path.parent}"
        elif name == "pods":
            proxy = bench.request.getfixturevalue("solid").proxy
            stack.callback(proxy.set, "none")
        else:
            port = int(settings["url"].rpartition(":")[2])
            proxy = stack.enter_context(running_proxy(("127.0.0.1", port), names_target=True))
            settings["url"] = settings["url"].replace(str(port), str(proxy.port))
        slot = make_slot(name, SlotSection(mode="external", settings=settings), place)

        async def count() -> int:
            if name == "beads":
                return len((await slot.call(ListBeads(), OWNER)).beads)
            if name == "memory":
                return len((await slot.call(ListMemories(), OWNER)).memories)
            if name == "orchestrator":
                runs = (await slot.call(ListRuns(), OWNER)).runs
                return len([one for one in runs if one.title == bench.unique])
            found = await slot.call(GetDocument("once.txt"), OWNER)
            assert found.content == b"once"
            return 1

        reads: dict[str, Callable[[], SlotCall[Any]]] = {
            "beads": ListBeads,
            "memory": ListMemories,
            "orchestrator": ListRuns,
            "pods": lambda: GetDocument("once.txt"),
        }
        writes: dict[str, Callable[[], SlotWrite[Any]]] = {
            "beads": lambda: CreateBead("once", key="k"),
            "memory": lambda: StoreMemory("once", key="k"),
            "orchestrator": lambda: SpawnRun("once", title=bench.unique, key=bench.unique),
            "pods": lambda: PutDocument("once.txt", "text/plain", "once", is_new=True, key="k"),
        }
        yield External(slot, proxy, reads[name], writes[name], count)


async def problem_of(slot: Slot, request: SlotCall[Any]) -> str:
    try:
        await slot.call(request, OWNER)
    except SlotError as error:
        return error.problem
    return "none"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets how long each client waits for an answer."""

    def set_timeouts(seconds: float) -> None:
        monkeypatch.setattr(postgres_module, "CALL_TIMEOUT", seconds)
        monkeypatch.setattr(postgres_module, "CONNECT_TIMEOUT", max(2, int(seconds)))
        monkeypatch.setattr(neighbour_module, "TIMEOUT", seconds)
        monkeypatch.setattr(solid_module, "TIMEOUT", seconds)
        monkeypatch.setattr(slot_module, "CONNECT_TIMEOUT", max(0.5, seconds))
        monkeypatch.setattr(slot_module, "MAX_RETRY_DELAY", 0.5)

    return set_timeouts


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("beads", "external"),
        ("beads", "neighbour"),
        ("memory", "external"),
        ("orchestrator", "external"),
        ("pods", "external"),
    ],
)
async def test_a_network_that_fails_in_a_write_is_told_once_and_the_write_happens_once(
    bench: SlotBench, tmp_path: Path, hasty: Callable[[float], None], name: SlotName, where: Where, fault: Fault
) -> None:
    if where == "neighbour":
        bench.neighbour.forget_beads()
    with make_external(bench, name, tmp_path, where) as external:
        slot = external.slot
        async with running(slot):
            await until(lambda: slot.status.state == "ok")
            await problem_of(slot, external.read())
            hasty(0.4)
            external.proxy.set(fault)
            assert await problem_of(slot, external.write()) == "unavailable"
            # It is known to be lost: nothing waits for the network any more.
            for _ in range(3):
                assert await problem_of(slot, external.read()) == "unavailable"
            await until(lambda: told(bench) == ["slot.lost"])
            found = await slot.probe()
            assert found is not None
            assert found.state == "degraded"
            hasty(8.0)
            external.proxy.set("none")
            await until(lambda: slot.status.state == "ok")
            await until(lambda: told(bench) == ["slot.lost", "slot.recovered"])
            for _ in range(2):
                assert await problem_of(slot, external.write()) == "none"
            assert await external.count() == 1
        assert [event.kind for event in bench.place.timeline.read(kinds=[f"{name}.*"])] == [external.write().event]


@pytest.mark.parametrize("fault", ["refused", "hung", "wrong", "cut"])
async def test_events_pass_a_network_that_fails_once_each_and_in_order(
    bench: SlotBench, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    import nats as nats_client
    from tests.support.nats import TOKEN

    monkeypatch.setattr(event_delivery, "MIN_DELAY", 0.01)
    monkeypatch.setattr(event_delivery, "MAX_DELAY", 0.1)
    monkeypatch.setattr(jetstream, "TIMEOUT", 1.0)
    settings = bench.settings_of("events")
    server = settings["url"]
    port = int(server.rpartition(":")[2])
    with running_proxy(("127.0.0.1", port)) as proxy:
        settings["url"] = f"nats://127.0.0.1:{proxy.port}"
        slot = make_slot("events", SlotSection(mode="external", settings=settings), bench.place_of("events"))

        async def is_done() -> bool:
            found = await slot.call(GetDelivery(), OWNER)
            return found.waiting == 0 and found.state == "ok"

        async with running(slot):
            await slot.call(PublishEvent("com.example.told", {"n": 0}, "s"), OWNER)
            await until(is_done)
            proxy.set(fault)
            for number in range(1, 20):
                # The sink is away, and publishing goes on.
                await slot.call(PublishEvent("com.example.told", {"n": number}, "s"), OWNER)
            await until(lambda: bool(bench.place.timeline.read(kinds=["events.sink_lost"])))
            proxy.set("none")
            await until(is_done)
        client = await nats_client.connect(server, token=TOKEN)
        try:
            stream = client.jetstream()
            import json

            found = [json.loads((await stream.get_msg(bench.unique, seq)).data or b"") for seq in range(1, 21)]
            assert [one["data"]["n"] for one in found] == list(range(20))
            assert (await stream.stream_info(bench.unique)).state.messages == 20
        finally:
            await client.close()
        assert len(bench.place.timeline.read(kinds=["events.sink_lost"])) == 1


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_webhook_behind_a_network_that_fails_gets_each_event_whole_and_in_order(
    bench: SlotBench, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    """A repetition has the id of the first, by which the receiver knows it."""
    monkeypatch.setattr(event_delivery, "MIN_DELAY", 0.01)
    monkeypatch.setattr(event_delivery, "MAX_DELAY", 0.1)
    monkeypatch.setattr(webhook_module, "TIMEOUT", 0.5)
    place = replace(bench.place, environ={"HOOK": SECRET})
    with running_webhook() as receiver, running_proxy(("127.0.0.1", receiver.port)) as proxy:
        settings = {"url": f"http://127.0.0.1:{proxy.port}/hook", "secret": "env:HOOK", "kinds": "test.*"}
        slot = make_slot("events", SlotSection(mode="external", settings=settings), place)
        async with running(slot):
            await slot.call(PublishEvent("com.example.told", {"n": 0}, "s"), OWNER)
            await until(lambda: len(receiver.received) == 1)
            proxy.set(fault)
            for number in range(1, 10):
                await slot.call(PublishEvent("com.example.told", {"n": number, "x": "x" * 5000}, "s"), OWNER)
            await until(lambda: bool(bench.place.timeline.read(kinds=["events.sink_lost"])))
            monkeypatch.setattr(webhook_module, "TIMEOUT", 15.0)
            proxy.set("none")
            await until(lambda: bool(bench.place.timeline.read(kinds=["events.sink_recovered"])))
            await until(lambda: len(set(receiver.ids)) == 10)
        first = {id: event["data"]["n"] for id, event in reversed([*zip(receiver.ids, receiver.received, strict=True)])}
        assert sorted(first.values()) == list(range(10))
        seen = list(dict.fromkeys(event["data"]["n"] for event in receiver.received))
        assert seen == list(range(10))
        assert receiver.forged == 0
        assert len(bench.place.timeline.read(kinds=["events.sink_lost"])) == 1


# Full disks


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """That of pytest is closed to the user of the database."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@needs_root
@pytest.mark.parametrize("name", ["beads", "memory"])
async def test_a_database_whose_disk_is_full_loses_nothing_and_takes_the_same_write_once_there_is_room(
    bench: SlotBench, name: SlotName
) -> None:
    text = os.urandom(30_000).hex()

    def write(number: int) -> SlotWrite[Any]:
        if name == "beads":
            return CreateBead(f"item {number}", text, key=f"k{number}")
        return StoreMemory(f"item {number} {text[:MAX_MEMORY]}", key=f"k{number}")

    async def list_stored(slot: Slot) -> list[str]:
        if name == "beads":
            return [one.title for one in (await slot.call(ListBeads(limit=200), OWNER)).beads]
        found = (await slot.call(ListMemories(limit=200), OWNER)).memories
        return [one.text.rpartition(" ")[0] for one in found]

    with (
        open_folder() as parent,
        small_disk(parent / "disk", "200m") as disk,
        running_postgres(disk) as server,
    ):
        settings = {"url": server.url, "schema": bench.unique}
        place = bench.place
        if name == "memory":
            settings["embedding"] = "ours/letters"
            place = replace(bench.place, embed=FakeProvider().embed)
        async with running(make_slot(name, SlotSection(mode="external", settings=settings), place)) as slot:
            await until(lambda: slot.status.state == "ok")
            ballast = fill_disk(disk, 0)
            done = 0
            while (problem := await problem_of(slot, write(done))) == "none":
                done += 1
            assert problem == "unavailable"
            ballast.unlink()

            async def is_stored() -> bool:
                return await problem_of(slot, write(done)) == "none"

            await until(is_stored)
            for number in range(done + 1):
                assert await problem_of(slot, write(number)) == "none"
            assert sorted(await list_stored(slot)) == sorted(f"item {number}" for number in range(done + 1))


@needs_root
async def test_a_solid_server_whose_disk_is_full_says_so_and_takes_the_same_write_once_there_is_room(
    bench: SlotBench,
) -> None:
    solid: SolidPod = bench.request.getfixturevalue("solid")
    write = PutDocument("once.txt", "text/plain", "x" * 100_000, key="k")
    async with running(bench.make("pods", "external")) as slot:
        await until(lambda: slot.status.state == "ok")
        folder = solid.folder / "data" / "alice" / bench.unique
        await asyncio.to_thread(shutil.rmtree, folder)
        with small_disk(folder, "1m"):
            ballast = fill_disk(folder, 0)
            assert await problem_of(slot, write) == "unavailable"
            ballast.unlink()
            await until(lambda: slot.status.state == "ok")
            for _ in range(2):
                assert await problem_of(slot, write) == "none"
            assert (await slot.call(GetDocument("once.txt"), OWNER)).content == b"x" * 100_000


# Answers without an end


@contextlib.contextmanager
def endless(prelude: bytes, piece: bytes, path: Path | None = None) -> Iterator[int]:
    """A server that answers every request with the prelude, and then with the same bytes again and again.

    At a port of this machine, or at the path of a Unix socket.
    """
    over = threading.Event()
    if path is None:
        server = socket.create_server(("127.0.0.1", 0))
    else:
        server = socket.create_server(str(path), family=socket.AF_UNIX)

    def serve(client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            client.recv(65536)
            client.sendall(prelude)
            while not over.is_set():
                client.sendall(piece)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield 0 if path is not None else server.getsockname()[1]
    finally:
        over.set()
        server.close()


def grown(before: int) -> int:
    """By how many MiB this process has grown at its most."""
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10


async def connect_fails(slot: Slot) -> str:
    try:
        await slot.connect()
    except SlotError as error:
        return error.message
    finally:
        await slot.close()
    return "connected"


@pytest.mark.parametrize("way", ["tcp", "unix"])
async def test_a_postgres_that_answers_without_end_is_cut_off(
    bench: SlotBench, way: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A row of 1.9 GB: the client would read all of it into memory."""

    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("!I", len(body) + 4) + body

    ready = message(b"R", struct.pack("!I", 0)) + message(b"Z", b"I")
    row = b"D" + struct.pack("!IHI", 1_900_000_010, 1, 1_900_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    folder = tmp_path_factory.mktemp("pg")
    with endless(ready + row, b"x" * 262_144, folder / ".s.PGSQL.5432" if way == "unix" else None) as port:
        where = f"@127.0.0.1:{port}/x" if way == "tcp" else f"@/x?host={folder}"
        url = f"postgresql://owner{where}"
        settings = {"url": url, "sslmode": "disable"}
        slot = make_slot("beads", SlotSection(mode="external", settings=settings), bench.place)
        words = await connect_fails(slot)
    assert "longer than 64 MiB" in words, words
    assert grown(before) < 900


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize("more", [b"\r\n", b"content-encoding: gzip\r\n\r\n"], ids=["endless", "packed"])
@pytest.mark.parametrize("name", ["beads", "orchestrator", "pods"])
async def test_a_server_that_answers_without_end_is_cut_off(bench: SlotBench, name: SlotName, more: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with endless(HEAD + more, b" " * 262_144) as port:
        settings = {"url": f"http://127.0.0.1:{port}", "token": "env:S"}
        if name == "pods":
            settings = {"url": f"http://127.0.0.1:{port}/x/", "client_id": "i", "client_secret": "env:S"}
        place = replace(bench.place, environ={"S": "secret-value"})
        words = await connect_fails(make_slot(name, SlotSection(mode="external", settings=settings), place))
    assert "longer than" in words or "packed" in words, words
    assert "secret-value" not in words
    assert grown(before) < 400


@pytest.fixture
async def bait() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A service on the loopback that nobody should be led to: its port, and what it got."""
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.read(1000))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], got


@pytest.mark.parametrize("status", ["301", "302", "307", "308"])
@pytest.mark.parametrize("name", ["beads", "events", "orchestrator", "pods"])
async def test_no_server_leads_freehold_to_another_address(
    bench: SlotBench, bait: tuple[int, list[bytes]], name: SlotName, status: str
) -> None:
    from freehold.slots.events.cloud_event import CloudEvent
    from freehold.slots.events.sink import SinkAway
    from freehold.slots.events.webhook import Webhook
    from freehold.slots.settings import ExternalSettings

    port, got = bait
    asked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} Elsewhere\r\nlocation: http://127.0.0.1:{port}/admin\r\ncontent-length: 0\r\n\r\n"
        writer.write(head.encode())
        writer.close()
        asked.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        environ = {"S": SECRET}
        if name == "events":
            given = {"url": f"{url}/hook", "secret": "env:S"}
            hook = Webhook(ExternalSettings("events", given, environ, bench.place.find_secret))
            event = CloudEvent(1, "1", "urn:x", "a.b", "t", "owner", {})
            with pytest.raises(SinkAway, match=status):
                await hook.send(event)
            await hook.close()
        else:
            pods = {"url": f"{url}/x/", "client_id": "i", "client_secret": "env:S"}
            settings = pods if name == "pods" else {"url": url, "token": "env:S"}
            place = replace(bench.place, environ=environ)
            words = await connect_fails(make_slot(name, SlotSection(mode="external", settings=settings), place))
            assert "cannot be reached" in words
    assert asked.is_set()
    assert got == []
