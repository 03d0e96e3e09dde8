"""One computer of the fleet, as the head knows it: who uses it, where it is, and the folders here that belong to it."""

import asyncio
import contextlib
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from freehold.errors import FreeholdError
from freehold.fleet.folder_copy import receive_changes, send_folder
from freehold.fleet.folder_state import FolderEntry, FolderState, StateLimits, read_folder
from freehold.fleet.node_link import NodeLink
from freehold.fleet.placer import RoomRequest
from freehold.fleet.remote_spec import HOME_PART, WORKSPACE_PART, RemoteSpec
from freehold.fleet.wire import PIECE, encode_message, read_error, read_message, relay

LOST = -9
"""The status of a computer whose node is gone."""
LeaseState = Literal["waiting", "copying", "starting", "running", "ended"]


@dataclass(frozen=True)
class LeaseOrder:
    """What a client asks for. The folders are paths of this machine; `shown` are the sources of read-only parts."""

    spec: RemoteSpec
    room: RoomRequest
    priority: int
    who: str
    folders: dict[str, Path]
    shown: tuple[Path, ...] = ()


@dataclass
class ComputerLease:
    """`bases` is what is known of the folders on the node, so that only changes are applied here."""

    id: str
    order: LeaseOrder
    listener: socket.socket
    state: LeaseState = "waiting"
    node: NodeLink | None = None
    client: asyncio.StreamWriter | None = None
    bases: dict[str, dict[str, FolderEntry]] = field(default_factory=dict)
    is_found_again: bool = False
    """Whether what was removed there is unknown, because an earlier head has sent the files."""
    pid: int | None = None
    saved_at: float = 0.0
    taking: asyncio.Lock = field(default_factory=asyncio.Lock)
    placed: asyncio.Queue[str] = field(default_factory=lambda: asyncio.Queue(16))
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def tell(self, message: dict[str, Any]) -> None:
        if self.client is not None:
            self.client.write(encode_message(message))

    @property
    def limits(self) -> StateLimits:
        return self.order.spec.state_limits

    def get_node(self) -> NodeLink:
        if self.node is None:
            raise FreeholdError("computer.ended", "The computer has no node")
        return self.node

    async def fill(self, node: NodeLink) -> None:
        """Send its folders. An empty one costs nothing."""
        for part, folder in self.order.folders.items():
            state = await asyncio.to_thread(read_folder, folder, None, self.limits)
            self.bases[part] = state.entries
            if state.entries:
                opening = {"open": "fill", "computer": self.id, "part": part}
                await send_part(node, opening, folder, state)

    async def take(self) -> int:
        """Bring the changes of its folders back. Returns how many names have changed."""
        node = self.get_node()
        changed = 0
        async with self.taking:
            for part, folder in self.order.folders.items():
                base = self.bases.get(part, {})
                if self.is_found_again:
                    base = {}
                stream = await node.open({"open": "take", "computer": self.id, "part": part})
                try:
                    found, count = await receive_changes(stream, folder, base, self.limits)
                finally:
                    stream[1].transport.abort()
                self.bases[part] = found
                changed += count
            self.is_found_again = False
            self.saved_at = asyncio.get_running_loop().time()
        return changed

    def end_with(self, task: "asyncio.Task[None]") -> None:
        """What is done for this computer ends when it is forgotten."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def serve(self) -> None:
        """Whoever connects to the socket here is at the guest there."""
        self.listener.setblocking(False)
        self._server = await asyncio.start_unix_server(self._accept, sock=self.listener, limit=PIECE)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.end_with(task)
        try:
            stream = await self.get_node().open({"open": "link", "computer": self.id})
            await relay((reader, writer), stream)
        except (OSError, TimeoutError, FreeholdError, asyncio.CancelledError):
            pass  # whoever is connected sees the end
        finally:
            writer.transport.abort()

    def close(self) -> None:
        """End what is done for it, and let nobody connect. Idempotent."""
        self.state = "ended"
        if self._server is not None:
            self._server.close()
            self._server = None
        with contextlib.suppress(OSError):
            self.listener.close()
        for task in list(self._tasks):
            task.cancel()


async def send_part(node: NodeLink, opening: dict[str, Any], folder: Path, state: FolderState) -> None:
    """Send a folder to a node, and wait until it is there."""
    stream = await node.open(opening)
    try:
        await send_folder(stream, folder, state)
        answer = await read_message(stream[0])
        if "error" in answer:
            raise read_error(answer["error"])
    finally:
        stream[1].transport.abort()


def find_folders(workspace: str, home: str) -> dict[str, Path]:
    """Raises `computer.no-folder`."""
    found = {WORKSPACE_PART: Path(workspace), HOME_PART: Path(home)}
    for folder in found.values():
        if not folder.is_absolute() or not folder.is_dir():
            raise FreeholdError("computer.no-folder", f"{folder} is not a folder")
    return found
