"""A head and one node in this process, with real TLS and real computers. Room is given by a list instead of Ray."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

from tests.support.condition import until

from freehold.fleet.certificates import FleetKey, make_own_pair, pinned_context
from freehold.fleet.client_door import ClientDoor
from freehold.fleet.content_cache import ContentCache
from freehold.fleet.fleet_folder import KnownNode
from freehold.fleet.head import FleetHead
from freehold.fleet.host import NodeHost
from freehold.fleet.node_cards import NodeCards
from freehold.fleet.place import SOCKET
from freehold.fleet.placer import NodeRoom, RayPlacer, RoomRequest
from freehold.fleet.versions import read_versions
from freehold.fleet.wire import PIECE, Stream
from freehold.home import find_home


class CountedCards(NodeCards):
    @contextlib.contextmanager
    def held(self, count: int) -> Iterator[tuple[str, ...]]:
        with super().held(count):
            yield ()


class CountingHost(NodeHost):
    """Remembers what it was asked, and what its connections were for."""

    def __init__(self, folder: Path, cache: ContentCache, cards: NodeCards) -> None:
        super().__init__(folder, cache, read_versions(), lambda _: None, cards, lambda: None)
        self.asked: list[str] = []
        self.openings: list[str] = []
        self.connections = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await super().accept(reader, writer)

    async def _serve(self, opening: dict[str, Any], stream: Stream) -> None:
        self.openings.append(opening["open"])
        await super()._serve(opening, stream)

    async def _obey(self, message: dict[str, Any]) -> Any:
        if message["do"] != "ray":
            self.asked.append(message["do"])
        return await super()._obey(message)


class RoomList:
    """Stands for Ray: there is room on `shed` for whoever asks, and cards while some are free."""

    is_ready = True

    def __init__(self, cards: int = 0) -> None:
        self.free_cards = cards
        self.given: dict[str, int] = {}
        self.waiting: dict[str, RoomRequest] = {}
        self.nodes = {"shed": NodeRoom(16, 2**34, 16, 2**34)}
        self.asked: list[str] = []
        self.released: list[str] = []
        self.head: FleetHead | None = None

    def place(self, id: str, request: RoomRequest) -> None:
        self.asked.append(id)
        self.waiting[id] = request
        self._give()

    def choose(self, id: str, request: RoomRequest) -> str:
        return "shed"

    def _give(self) -> None:
        assert self.head is not None
        for id, request in list(self.waiting.items()):
            if request.gpus <= self.free_cards:
                del self.waiting[id]
                self.free_cards -= request.gpus
                self.given[id] = request.gpus
                asyncio.get_running_loop().call_soon(self.head.take_placed, id, self.choose(id, request))

    def release(self, id: str) -> None:
        self.released.append(id)
        self.waiting.pop(id, None)
        self.free_cards += self.given.pop(id, 0)
        self._give()

    async def run(self) -> None:
        await asyncio.Event().wait()


class OneNode:
    def __init__(self, place: str, key: FleetKey, head: FleetHead, host: CountingHost, rooms: RoomList) -> None:
        self.place = place
        self.key = key
        self.head = head
        self.host = host
        self.rooms = rooms


@contextlib.asynccontextmanager
async def one_node(cards: int = 0, quota: int = 0) -> AsyncIterator[OneNode]:
    """`cards` are of no kind that this machine has: only their number is real."""
    with (
        tempfile.TemporaryDirectory(prefix="fh-") as name,  # paths of sockets are short
        ContentCache(Path(name) / "cache", 2**24) as cache,
    ):
        home = find_home(Path(name) / "home")
        for folder in (home.root, home.run):
            folder.mkdir(parents=True, mode=0o700)
        head_key, node_key = make_own_pair("head"), make_own_pair("node")
        host = CountingHost(Path(name) / "node", cache, CountedCards(tuple(range(cards))))
        rooms = RoomList(cards)
        context = pinned_context(node_key, head_key.certificate, server=True)
        server = await asyncio.start_server(host.accept, "127.0.0.1", 0, ssl=context, limit=PIECE)
        known = KnownNode("shed", "127.0.0.1", server.sockets[0].getsockname()[1], node_key.certificate, "", {})
        head = rooms.head = FleetHead(head_key, {"shed": known}, quota=quota, save_every=3600)
        async with server, asyncio.TaskGroup() as group:
            running = [group.create_task(host.run()), group.create_task(head.run(cast(RayPlacer, rooms)))]
            async with ClientDoor(head, "SPREAD", {}).serve(home.run / SOCKET):
                await until(lambda: not head.list_blocked())
                yield OneNode(f"ray://{home.root}", head_key, head, host, rooms)
            server.close()
            for task in running:
                task.cancel()
