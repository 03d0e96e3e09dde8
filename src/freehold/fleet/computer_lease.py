"""One computer of the fleet, as the head knows it: who uses it, where it is, and the folders here that belong to it."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from freehold.errors import FreeholdError
from freehold.fleet.early_connection import EarlyConnection
from freehold.fleet.folder_copy import receive_changes, send_folder
from freehold.fleet.folder_state import FolderEntry, FolderState, StateLimits, read_folder
from freehold.fleet.node_link import NodeLink
from freehold.fleet.placer import RoomRequest
from freehold.fleet.relay import relay
from freehold.fleet.remote_spec import HOME_PART, WORKSPACE_PART, RemoteSpec
from freehold.fleet.wire import PIECE, Stream, abort_stream, encode_message

LOST = -9
"""The status of a computer whose node is gone."""
MAX_TOLD = 5
MAX_UNREAD = 1024 * 1024
LeaseState = Literal["waiting", "copying", "starting", "running", "ended"]
_log = logging.getLogger("freehold.fleet")


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
    """`bases` is what is known of the folders on the node, so that only changes are applied here. `skipped` are names in
    them that cannot be copied."""

    id: str
    order: LeaseOrder
    listener: socket.socket
    state: LeaseState = "waiting"
    node: NodeLink | None = None
    client: asyncio.StreamWriter | None = None
    bases: dict[str, dict[str, FolderEntry]] = field(default_factory=dict)
    skipped: dict[str, frozenset[str]] = field(default_factory=dict)
    is_found_again: bool = False
    """An earlier head has sent the files: the node knows `bases`."""
    pid: int | None = None
    saved_at: float = 0.0
    taking: asyncio.Lock = field(default_factory=asyncio.Lock)
    placed: asyncio.Queue[str] = field(default_factory=lambda: asyncio.Queue(16))
    early: EarlyConnection | None = None
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def tell(self, message: dict[str, Any]) -> None:
        """Of what a node reports a client that reads too little misses something: newer words and events follow."""
        if self.client is None:
            return
        is_report = message.get("notice") in ("words", "event")
        if not is_report or self.client.transport.get_write_buffer_size() < MAX_UNREAD:
            self.client.write(encode_message(message))

    @property
    def limits(self) -> StateLimits:
        return self.order.spec.state_limits

    def get_node(self) -> NodeLink:
        if self.node is None:
            raise FreeholdError("computer.ended", "The computer has no node")
        return self.node

    async def read_folders(self) -> dict[str, FolderState]:
        """Its folders here, as they are now."""

        def read() -> dict[str, FolderState]:
            return {part: read_folder(folder, None, self.limits) for part, folder in self.order.folders.items()}

        states = await asyncio.to_thread(read)
        self.bases = {part: state.entries for part, state in states.items()}
        for part, state in states.items():
            self._tell_skipped(part, state.skipped)
        return states

    async def fill(self, node: NodeLink, states: Mapping[str, FolderState]) -> None:
        """Send its folders. An empty one costs nothing."""
        for part, state in states.items():
            if state.entries:
                opening = {"open": "fill", "computer": self.id, "part": part}
                await send_part(node, opening, self.order.folders[part], state)

    async def take(self) -> int:
        """Bring the changes of its folders back. Returns how many names have changed."""
        node = self.get_node()
        changed = 0
        async with self.taking:
            for part, folder in self.order.folders.items():
                base = None if self.is_found_again else self.bases.get(part, {})
                stream = await node.open({"open": "take", "computer": self.id, "part": part, "base": base is None})
                try:
                    taken = await receive_changes(stream, folder, base, self.limits, self.id)
                finally:
                    stream[1].transport.abort()
                self.bases[part] = taken.base
                changed += taken.count
                self._tell_skipped(part, taken.skipped)
            self.is_found_again = False
            self.saved_at = asyncio.get_running_loop().time()
        return changed

    def _tell_skipped(self, part: str, paths: Iterable[str]) -> None:
        """When there are more than the last time."""
        before, self.skipped[part] = self.skipped.get(part, frozenset()), frozenset(paths)
        new = sorted(self.skipped[part] - before)
        if new:
            shown = ", ".join(ascii(path[:200]) for path in new[:MAX_TOLD])
            _log.warning("%d names of the computer %s cannot be copied: %s", len(new), self.id[:12], shown)

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
            stream = await self._open_link()
            await relay((reader, writer), stream)
        except (OSError, TimeoutError, FreeholdError, asyncio.CancelledError):
            pass  # whoever is connected sees the end
        finally:
            abort_stream(writer)

    async def _open_link(self) -> Stream:
        node, opening = self.get_node(), {"open": "link", "computer": self.id}
        stream = await self.early.take() if self.early is not None else None
        if stream is None:
            return await node.open(opening)
        stream[1].write(encode_message(opening))
        return stream

    def close(self) -> None:
        """End what is done for it, and let nobody connect. Idempotent."""
        self.state = "ended"
        if self.early is not None:
            self.early.close()
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
    finally:
        stream[1].transport.abort()


def find_folders(workspace: str, home: str) -> dict[str, Path]:
    """The real ones, as the owner may have named a link: later none is followed. Raises `computer.no-folder`."""
    found = {WORKSPACE_PART: Path(workspace), HOME_PART: Path(home)}
    for folder in found.values():
        if not folder.is_absolute() or not folder.is_dir():
            raise FreeholdError("computer.no-folder", f"{folder} is not a folder")
    return {part: folder.resolve() for part, folder in found.items()}
