"""The head's control connection to one node. It is made again when it is lost; a node that stays silent is lost."""

import asyncio
import contextlib
import itertools
import logging
import ssl
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from freehold.errors import FreeholdError
from freehold.fleet.versions import find_skew
from freehold.fleet.wire import PIECE, Stream, encode_message, read_error, read_message

PING_PAUSE = 1.0
LOST_SECONDS = 4.0
"""Without a word for so long, the computers of a node are lost for their owners, and are placed elsewhere."""
RETRY_PAUSE = 0.5
_log = logging.getLogger("freehold.fleet")

Notice = dict[str, Any]


@dataclass(frozen=True)
class NodeAddress:
    name: str
    host: str
    port: int
    context: ssl.SSLContext


class NodeLink:
    """`run` it. `on_notice` gets what the node reports, `on_found` the computers it has after each connection."""

    def __init__(
        self,
        address: NodeAddress,
        on_found: Callable[[str, list[str], dict[str, int]], None],
        on_notice: Callable[[str, Notice], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self.address = address
        self._on_found = on_found
        self._on_notice = on_notice
        self._on_lost = on_lost
        self._writer: asyncio.StreamWriter | None = None
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._streams: weakref.WeakSet[asyncio.StreamWriter] = weakref.WeakSet()
        self._heard = 0.0
        self._was_told_lost = True
        self.skew = ""
        """How its versions differ from those of this head, in words."""
        self.trouble = "not connected yet"
        self.connected = asyncio.Event()

    @property
    def is_connected(self) -> bool:
        return self._writer is not None

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                # A connection attempt counts as silence: nothing is waited for longer than that.
                async with asyncio.timeout(LOST_SECONDS):
                    stream = await self.open({"open": "control"})
                    hello = await read_message(stream[0])
                await self._talk(stream, hello)
            except (OSError, TimeoutError, asyncio.IncompleteReadError, FreeholdError) as error:
                self.trouble = str(error) or type(error).__name__
            finally:
                self._disconnect()
            if not self._was_told_lost and loop.time() - self._heard > LOST_SECONDS:
                self._was_told_lost = True
                self._cut_streams()
                self._on_lost(self.address.name)
            await asyncio.sleep(RETRY_PAUSE)

    async def open(self, opening: dict[str, Any]) -> Stream:
        """One more connection to the node, for what `opening` says. It is cut when the node is lost."""
        host, port, context = self.address.host, self.address.port, self.address.context
        async with asyncio.timeout(LOST_SECONDS):
            stream = await asyncio.open_connection(host, port, ssl=context, limit=PIECE)
        self._streams.add(stream[1])
        stream[1].write(encode_message(opening))
        return stream

    async def ask(self, do: str, computer: str = "", **more: Any) -> Any:
        """Raises the node's error, and `fleet.lost` when the connection ends before the answer."""
        if self._writer is None:
            raise FreeholdError("fleet.lost", f"The node {self.address.name} cannot be reached: {self.trouble}")
        number = next(self._numbers)
        reply = self._replies[number] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(encode_message({"id": number, "do": do, "computer": computer, **more}))
            return await reply
        finally:
            self._replies.pop(number, None)

    async def _talk(self, stream: Stream, hello: dict[str, Any]) -> None:
        reader, self._writer = stream
        self.skew = find_skew({str(name): str(value) for name, value in hello["versions"].items()})
        self.trouble, self._was_told_lost = "", False
        self._heard = asyncio.get_running_loop().time()
        self._on_found(self.address.name, list(hello["computers"]), dict(hello["ended"]))
        self.connected.set()
        pinging = asyncio.ensure_future(self._ping(self._writer))
        try:
            while True:
                async with asyncio.timeout(LOST_SECONDS):
                    message = await read_message(reader)
                self._heard = asyncio.get_running_loop().time()
                self._take(message)
        finally:
            pinging.cancel()
            await asyncio.gather(pinging, return_exceptions=True)

    async def _ping(self, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(encode_message({"ping": True}))
            await asyncio.sleep(PING_PAUSE)

    def _take(self, message: dict[str, Any]) -> None:
        if "notice" in message:
            self._on_notice(self.address.name, message)
        elif "id" in message:
            reply = self._replies.get(message["id"])
            if reply is None or reply.done():
                return
            if "error" in message:
                reply.set_exception(read_error(message["error"]))
            else:
                reply.set_result(message.get("result"))

    def _cut_streams(self) -> None:
        """Nothing waits for a node that is silent: TCP alone would wait for many minutes."""
        for writer in list(self._streams):
            writer.transport.abort()

    def _disconnect(self) -> None:
        if self._writer is None:
            return
        self._writer.transport.abort()
        self._writer = None
        self.connected.clear()
        for reply in self._replies.values():
            if not reply.done():
                error = FreeholdError("fleet.lost", f"The connection to the node {self.address.name} was lost")
                reply.set_exception(error)
                with contextlib.suppress(FreeholdError):
                    reply.exception()
