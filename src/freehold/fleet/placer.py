"""Asks Ray where there is room. Ray is restarted whenever it ends: computers do not notice.

An answer that is not valid is that of a bad Ray, which is started again. A name that is no node of this fleet is no room:
whoever uses it checks that.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, assert_never

from freehold.errors import FreeholdError
from freehold.fleet.ray_answers import MachinesAsked, NodesSeen, RayStarted, RoomFound, read_amounts, read_answer
from freehold.fleet.ray_sandbox import INSIDE, RayKeys, RayProcess

RESTART_PAUSE = 1.0
MAX_LINE = 4 * 1024 * 1024
_log = logging.getLogger("freehold.fleet")

Strategy = Literal["SPREAD", "PACK"]


@dataclass(frozen=True)
class RoomRequest:
    """What one computer needs. `on` names the node where it is already, `not_on` those that it must not be on."""

    cpus: float
    memory: int
    labels: Mapping[str, str] = field(default_factory=dict)
    strategy: Strategy = "SPREAD"
    on: str = ""
    not_on: tuple[str, ...] = ()
    gpus: int = 0


@dataclass(frozen=True)
class NodeRoom:
    """What Ray says that a node has, and what of it is free."""

    cpus: float
    memory: int
    free_cpus: float
    free_memory: int
    gpus: int = 0
    free_gpus: int = 0


class MachineAnswers(Protocol):
    """What Ray's autoscaler may ask for. `kinds` describe the machines, and `idle` is in seconds."""

    kinds: Mapping[str, Mapping[str, Any]]
    idle: float

    def answer(self, request: object) -> dict[str, Any]: ...


class RayPlacer:
    """`run` it. `on_placed` gets the id of a request and the name of a node.

    `on_returned` gets the name of a node that Ray knows now and did not know. `kept` are reservations to make again.
    `on_started` gets the name of each Ray that was started. `machines` answers its autoscaler, where there is one.
    """

    def __init__(
        self,
        folder: Path,
        keys: RayKeys,
        address: str,
        port: int,
        ports: int,
        on_placed: Callable[[str, str], None],
        on_returned: Callable[[str], None],
        kept: Callable[[], Mapping[str, RoomRequest]],
        on_started: Callable[[str], None],
        machines: MachineAnswers | None = None,
    ) -> None:
        self._folder = folder
        self._keys = keys
        self._machines = machines
        self._settings = {
            "address": address,
            "port": port,
            "ports": ports,
            "folder": f"{INSIDE}/session",
            "machines": {} if machines is None else dict(machines.kinds),
            "idle": 0 if machines is None else machines.idle,
        }
        self._on_placed = on_placed
        self._on_returned = on_returned
        self._kept = kept
        self._on_started = on_started
        self._requests: asyncio.StreamWriter | None = None
        self._numbers = itertools.count(1)
        self._asked: dict[str, int] = {}
        """The last request of each id. An answer to an earlier one names room that Ray has given away again."""
        self.process: RayProcess | None = None
        self.nodes: dict[str, NodeRoom] = {}

    @property
    def is_ready(self) -> bool:
        return self._requests is not None

    def place(self, id: str, request: RoomRequest) -> None:
        """Nothing happens while Ray is not ready: all requests are made again when it is."""
        number = self._asked[id] = next(self._numbers)
        self._say({"do": "place", "id": id, "number": number, **_describe(request)})

    def release(self, id: str) -> None:
        self._asked.pop(id, None)
        self._say({"do": "release", "id": id})

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                async with self._started() as (reader, writer):
                    await self._serve(reader, writer)
            except (OSError, FreeholdError, ValueError) as error:
                _log.warning("Ray: %s", error)
            finally:
                self._requests, self.process = None, None
                self.nodes = {}
            await asyncio.sleep(RESTART_PAUSE)

    @contextlib.asynccontextmanager
    async def _started(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        log = os.open(self._folder.parent / "ray.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            process = await asyncio.to_thread(RayProcess, self._folder, self._keys, self._settings, log)
        finally:
            os.close(log)
        self.process = process
        try:
            requests, answers = process.open_streams()
            async with _pipe_streams(requests, answers) as streams:
                yield streams
        finally:
            process.kill()
            await process.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            match read_answer(line):
                case RayStarted():
                    self._requests = writer
                    self._on_started(secrets.token_hex(8))
                    for id, request in self._kept().items():
                        self.place(id, request)
                case RoomFound() as found:
                    if self._asked.get(found.placed) == found.number:
                        self._on_placed(found.placed, found.node)
                case MachinesAsked() as request:
                    refusal = {"error": "This fleet starts no machines"}
                    answer = refusal if self._machines is None else self._machines.answer(request.asked)
                    self._say({"do": "answer", "number": request.number, "answer": answer})
                case NodesSeen() as seen:
                    self._take_nodes(seen)
                case other:
                    assert_never(other)

    def _take_nodes(self, seen: NodesSeen) -> None:
        rows = filter(None, map(read_amounts, seen.nodes))
        before, self.nodes = self.nodes, {name: _read_room(amounts) for name, amounts in rows}
        for name in self.nodes.keys() - before.keys():
            self._on_returned(name)

    def _say(self, message: dict[str, Any]) -> None:
        if self._requests is not None:
            self._requests.write(json.dumps(message).encode() + b"\n")


def _describe(request: RoomRequest) -> dict[str, Any]:
    return {
        "cpus": request.cpus,
        "memory": request.memory,
        "labels": dict(request.labels),
        "strategy": request.strategy,
        "on": request.on,
        "not_on": list(request.not_on),
        "gpus": request.gpus,
    }


def _read_room(row: list[float]) -> NodeRoom:
    cpus, memory, free_cpus, free_memory, gpus, free_gpus = row
    return NodeRoom(cpus, int(memory), free_cpus, int(free_memory), int(gpus), int(free_gpus))


@contextlib.asynccontextmanager
async def _pipe_streams(
    requests: int, answers: int
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(MAX_LINE)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(answers, "rb"))
    writing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(requests, "wb"))
    try:
        yield reader, asyncio.StreamWriter(writing, protocol, reader, loop)
    finally:
        reading.close()
        if not writing.is_closing():
            writing.abort()
