"""How does the head of a fleet behave with 1,000 nodes and 50,000 computers, and what breaks first?

    python -m bench.fleet_scale [--quick] [--json]

By simulation, in one process: head, queue, placer, links and status are the real ones. Nodes are streams in memory that
answer after a latency that was recorded with a real one, and that of a network at home. Ray is a list of nodes that has
an answer at once: the figures are the head's own work. Ray's time is not in them: it took 3 to 6 ms for a placement group
in the trials, one after the other.
"""

import asyncio
import contextlib
import json
import random
import socket
import ssl
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from bench.harness import Figure, main
from freehold.computer.contract.spec import MIB, ComputerSpec, Limits
from freehold.fleet import node_link
from freehold.fleet.certificates import make_own_pair, pinned_context
from freehold.fleet.computer_lease import ComputerLease, LeaseOrder
from freehold.fleet.fleet_folder import KnownNode
from freehold.fleet.head import FleetHead
from freehold.fleet.head_commands import describe_fleet
from freehold.fleet.node_link import NodeAddress, NodeLink
from freehold.fleet.placer import RayPlacer, RoomRequest
from freehold.fleet.ray_sandbox import RayKeys
from freehold.fleet.remote_spec import describe_spec
from freehold.fleet.versions import read_versions
from freehold.fleet.wire import Stream, encode_message
from freehold.strict_json import encode

NODES, COMPUTERS = 1000, 50_000
NEVER = 3600.0
LATENCIES = Path(__file__).parent / "data/fleet_latencies.json"
"""Of requests to a real node of the same machine, recorded by `bench.fleet.record_latencies`."""
NETWORK = (0.0003, 0.0004, 0.0005, 0.0008, 0.002, 0.005)
"""Seconds there and back that a network adds: chosen, as in a house with cable and radio."""
CORES_PER_NODE, MEMORY_PER_NODE = 64, 256 * 1024 * MIB
SMALL = RoomRequest(1, 256 * MIB)
MAX_PLACE, MAX_PAGE, MAX_BEAT, MAX_REPORT = 2.0, 100.0, 30.0, 100.0
"""Milliseconds for one computer, for one answer of the page, percent of a processor, milliseconds for a report of Ray."""


@cache
def read_latencies() -> tuple[float, ...]:
    """In seconds."""
    return tuple(one / 1000 for one in json.loads(LATENCIES.read_text())["milliseconds"])


class FarEnd:
    """The transport of a stream in memory. What is written is answered by `answer`, a latency later."""

    def __init__(self, answer: Callable[[bytes], None]) -> None:
        self._answer = answer
        self.transport = self

    def write(self, data: bytes) -> None:
        self._answer(data)

    def abort(self) -> None:
        self._answer = lambda data: None


class SimulatedNode(NodeLink):
    """A link whose node is a stream in memory."""

    def __init__(self, name: str, head: FleetHead) -> None:
        address = NodeAddress(name, "10.0.0.1", 1, cast(ssl.SSLContext, None))
        super().__init__(address, head._take_found, head._take_notice, head._lose_node)
        self.latency = random.choice(read_latencies()) + random.choice(NETWORK)
        self.is_silent = False

    async def open(self, opening: dict[str, Any]) -> Stream:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        pong = encode_message({"pong": True})

        def answer(_: bytes) -> None:
            if not self.is_silent:
                loop.call_later(self.latency, reader.feed_data, pong)

        reader.feed_data(encode_message({"computers": [], "versions": read_versions(), "ended": {}}))
        return reader, cast(asyncio.StreamWriter, FarEnd(answer))


class SimulatedRay:
    """Reads the lines of the placer, and answers each request with the node that has most room."""

    def __init__(self, names: list[str]) -> None:
        self.reader = asyncio.StreamReader(4 * 1024 * 1024)
        self.writer = cast(asyncio.StreamWriter, FarEnd(self._take))
        self._free = deque(name for _ in range(CORES_PER_NODE) for name in names)
        self._placed: dict[str, str] = {}
        self._names = names
        self.say({"ready": True})
        self.report()

    def say(self, message: dict[str, Any]) -> None:
        self.reader.feed_data(json.dumps(message).encode() + b"\n")

    def report(self) -> None:
        rows = [[name, CORES_PER_NODE, MEMORY_PER_NODE, 14.0, MEMORY_PER_NODE // 2, 0, 0] for name in self._names]
        self.say({"nodes": rows})

    def _take(self, line: bytes) -> None:
        request = json.loads(line)
        if request["do"] == "release":
            name = self._placed.pop(request["id"], None)
            if name is not None:
                self._free.append(name)
        elif self._free:
            name = self._placed[request["id"]] = self._free.popleft()
            self.say({"placed": request["id"], "number": request["number"], "node": name})


@dataclass
class SimulatedFleet:
    """A head with so many nodes that are connected. `close` it."""

    head: FleetHead
    ray: SimulatedRay
    links: dict[str, SimulatedNode]
    tasks: list["asyncio.Task[None]"]
    listener: socket.socket

    def make_lease(self, number: int) -> ComputerLease:
        spec = describe_spec(ComputerSpec(Path("/"), Path("/"), limits=Limits(), hostname=f"run-{number}"), ())
        order = LeaseOrder(spec, SMALL, number % 3, f"session:{number % 500}", {})
        lease = ComputerLease(f"{number:032x}", order, self.listener)
        self.head.leases[lease.id] = lease
        return lease

    async def place(self, number: int) -> None:
        lease = self.make_lease(number)
        lease.node = await self.head._find_room(lease)
        lease.state = "running"

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.listener.close()


async def build_fleet(nodes: int) -> SimulatedFleet:
    node_link.LOST_SECONDS = NEVER  # processors that are busy with other work make no node silent here
    own = make_own_pair("head")
    names = [f"node-{number}" for number in range(nodes)]
    known = {name: KnownNode(name, "10.0.0.1", 1, own.certificate, "", {"arch": "x86_64"}) for name in names}
    head = FleetHead(own, known, quota=0, save_every=30)
    links = {name: SimulatedNode(name, head) for name in names}
    tasks = [asyncio.create_task(link.run()) for link in links.values()]
    head._links = {name: (link, task) for (name, link), task in zip(links.items(), tasks, strict=True)}
    keys = cast(RayKeys, None)
    placer = RayPlacer(
        Path("/"), keys, "", 0, 0, head.take_placed, head.reserve_again, head.list_reservations, lambda ray: None
    )
    head.placer = placer
    ray = SimulatedRay(names)
    tasks.append(asyncio.create_task(placer._serve(ray.reader, ray.writer)))
    await asyncio.gather(*(link.connected.wait() for link in links.values()))
    while not placer.nodes:  # noqa: ASYNC110 - once, before anything is measured
        await asyncio.sleep(0.01)
    return SimulatedFleet(head, ray, links, tasks, socket.socket())


async def measure_placement(fleet: SimulatedFleet, count: int) -> tuple[float, float]:
    """Milliseconds of the head for one computer, of the first 200 and of the last 200. So many ask at a time."""
    times: list[float] = []
    for first in range(0, count, 200):
        began = time.process_time()
        await asyncio.gather(*(fleet.place(number) for number in range(first, min(first + 200, count))))
        times.append((time.process_time() - began) / 200 * 1000)
    return times[0], times[-1]


async def measure_heartbeats(seconds: float) -> tuple[float, float]:
    """Percent of a processor for the pings of all nodes, and the longest pause of the loop in milliseconds."""
    longest, began, processor = 0.0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        asked = time.perf_counter()
        await asyncio.sleep(0.005)
        longest = max(longest, time.perf_counter() - asked - 0.005)
    return (time.process_time() - processor) / (time.perf_counter() - began) * 100, longest * 1000


async def measure_report(fleet: SimulatedFleet) -> float:
    """Milliseconds of the processor to read what Ray says about all nodes, once a second."""
    assert fleet.head.placer is not None
    before, began = fleet.head.placer.nodes, time.process_time()
    fleet.ray.report()
    while fleet.head.placer.nodes is before:  # noqa: ASYNC110 - as soon as it is there
        await asyncio.sleep(0)
    return (time.process_time() - began) * 1000


def measure_page(fleet: SimulatedFleet, most: int | None) -> tuple[float, float]:
    """Milliseconds of one answer, and its size in kB."""
    times = []
    for _ in range(5):
        began = time.process_time()
        answer = encode_message(encode(describe_fleet(fleet.head, most)))
        times.append((time.process_time() - began) * 1000)
    return statistics.median(times), len(answer) / 1000


def measure_queue(fleet: SimulatedFleet, count: int) -> tuple[float, float]:
    """So many wait: milliseconds to add one, and for the next when one has got room."""
    queue, first = fleet.head.queue, COMPUTERS * 2
    began = time.process_time()
    for number in range(first, first + count):
        lease = fleet.make_lease(number)
        queue.add(lease.id, replace_cores(SMALL), number % 3, lease.order.who, 0.0)
    added = (time.process_time() - began) / count * 1000
    began = time.process_time()
    for wish in list(queue)[:50]:
        queue.settle(wish.id)
    return added, (time.process_time() - began) / 50 * 1000


def replace_cores(request: RoomRequest) -> RoomRequest:
    """More than any node has, so that all of them wait."""
    return RoomRequest(CORES_PER_NODE * 2, request.memory)


def measure_loss(fleet: SimulatedFleet) -> tuple[float, int]:
    """Milliseconds of the head when a node is lost, and how many computers were told so."""
    name = next(one.node.address.name for one in fleet.head.leases.values() if one.node is not None)
    before = len(fleet.head.leases)
    fleet.links[name]._disconnect()
    began = time.process_time()
    fleet.head._lose_node(name)
    return (time.process_time() - began) * 1000, before - len(fleet.head.leases)


async def measure_handshake(rounds: int) -> float:
    """Milliseconds of the processor for a connection to a node, with the node's half. The files of a computer need two."""
    head, node = make_own_pair("head"), make_own_pair("node")

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await reader.read(1)
        writer.transport.abort()

    inside = pinned_context(node, head.certificate, server=True)
    outside = pinned_context(head, node.certificate, server=False)
    async with await asyncio.start_server(accept, "127.0.0.1", 0, ssl=inside) as server:
        port = server.sockets[0].getsockname()[1]
        began = time.process_time()
        for _ in range(rounds):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=outside)
            writer.transport.abort()
        return (time.process_time() - began) / rounds * 1000


def measure(quick: bool) -> Iterator[Figure]:
    nodes, computers = (NODES, COMPUTERS // 10) if quick else (NODES, COMPUTERS)
    with asyncio.Runner() as runner:
        fleet = runner.run(build_fleet(nodes))
        try:
            first, last = runner.run(measure_placement(fleet, computers))
            yield Figure("place a computer, the first ones", first, "ms")
            yield _judge(f"place a computer, beside {computers}", last, "ms", MAX_PLACE)
            busy, pause = runner.run(measure_heartbeats(3 if quick else 10))
            yield _judge(f"heartbeats of {nodes} nodes", busy, "%", MAX_BEAT, "of a processor")
            yield Figure("longest pause of the loop meanwhile", pause, "ms")
            yield _judge("read a report of Ray", runner.run(measure_report(fleet)), "ms", MAX_REPORT)
            added, settled = measure_queue(fleet, computers)
            yield Figure(f"one more waits beside {computers}", added, "ms")
            yield Figure("one of them gets room", settled, "ms")
            page, size = measure_page(fleet, 500)
            yield _judge("an answer for the page", page, "ms", MAX_PAGE, f"{size:.0f} kB")
            whole, size = measure_page(fleet, None)
            yield Figure("freehold fleet status, all of it", whole, "ms", f"{size:.0f} kB")
            loss, lost = measure_loss(fleet)
            yield Figure(f"a node with {lost} computers is lost", loss, "ms")
        finally:
            runner.run(fleet.close())
        handshake = runner.run(measure_handshake(20 if quick else 100))
        yield Figure("a connection for files, both ends", handshake, "ms")
        yield Figure(
            "computers whose files are taken each 30 s", 30_000 / handshake, "", "by one processor of the head"
        )


def _judge(name: str, value: float, unit: str, most: float, more: str = "") -> Figure:
    return Figure(name, value, unit, more, None, f"at most {most:g} {unit}", value <= most)


if __name__ == "__main__":
    main(__doc__ or "", measure)
