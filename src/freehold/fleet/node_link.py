"""The head's control connection to one node. It is made again when it is lost; a node that stays silent is lost."""

import asyncio
import contextlib
import itertools
import logging
import ssl
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, assert_never

from freehold.errors import FreeholdError
from freehold.fleet.node_messages import (
    ComputerEnded,
    ComputerEvent,
    ComputerWords,
    NodeNotice,
    NodePong,
    NodeRefusal,
    NodeReply,
    read_hello,
    read_node_message,
)
from freehold.fleet.remote_spec import decode_reported
from freehold.fleet.versions import find_skew
from freehold.fleet.wire import PIECE, Stream, encode_message, read_error, read_message

PING_PAUSE = 1.0
LOST_SECONDS = 4.0
"""Without a word for so long, the computers of a node are lost for their owners, and are placed elsewhere."""
RETRY_PAUSE = 0.5
_log = logging.getLogger("freehold.fleet")

Reply = TypeVar("Reply")


@dataclass(frozen=True)
class NodeAddress:
    name: str
    host: str
    port: int
    context: ssl.SSLContext


class NodeLink:
    """`run` it. `on_notice` gets what the node reports, `on_found` the computers it has after each connection.

    A node that says something else than was expected loses this connection, as one that is silent does.
    """

    def __init__(
        self,
        address: NodeAddress,
        on_found: Callable[[str, Collection[str], Mapping[str, int]], None],
        on_notice: Callable[[str, NodeNotice], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self.address = address
        self._on_found = on_found
        self._on_notice = on_notice
        self._on_lost = on_lost
        self._control: asyncio.StreamWriter | None = None
        self._writer: asyncio.StreamWriter | None = None
        """The same, once the node has said hello."""
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._streams: weakref.WeakSet[asyncio.StreamWriter] = weakref.WeakSet()
        self._heard = 0.0
        self._was_told_lost = True
        self.skew = ""
        """How its versions differ from those of this head, in words."""
        self.trouble = "not connected yet"
        self._fault = ""
        """What was wrong with a reply, when the connection was ended for it."""
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
                    self._control = stream[1]
                    hello = await read_message(stream[0])
                await self._talk(stream, hello)
            except (OSError, TimeoutError, asyncio.IncompleteReadError, FreeholdError) as error:
                self.trouble = self._fault or str(error) or type(error).__name__
            finally:
                self._disconnect()
            if not self._was_told_lost and loop.time() - self._heard > LOST_SECONDS:
                self._was_told_lost = True
                self._cut_streams()
                self._on_lost(self.address.name)
            await asyncio.sleep(RETRY_PAUSE)

    async def open(self, opening: dict[str, Any]) -> Stream:
        """One more connection to the node, for what `opening` says. It is cut when the node is lost."""
        stream = await self.connect()
        stream[1].write(encode_message(opening))
        return stream

    async def connect(self) -> Stream:
        """A connection that is for nothing yet. The node ends it after some seconds without an opening."""
        host, port, context = self.address.host, self.address.port, self.address.context
        async with asyncio.timeout(LOST_SECONDS):
            stream = await asyncio.open_connection(host, port, ssl=context, limit=PIECE)
        self._streams.add(stream[1])
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

    async def ask_for(self, shape: type[Reply], do: str, computer: str = "", **more: Any) -> Reply:
        """As `ask`. A reply of another shape ends the connection, and is a lost node for who asked."""
        result = await self.ask(do, computer, **more)
        try:
            found: Reply = decode_reported(shape, result)
        except FreeholdError as error:
            self._fault = error.message
            if self._control is not None:
                self._control.transport.abort()
            raise FreeholdError("fleet.lost", f"The node {self.address.name} gave no valid answer") from error
        return found

    async def _talk(self, stream: Stream, message: dict[str, Any]) -> None:
        hello = read_hello(message)
        reader, self._writer = stream
        self.skew = find_skew(hello.versions)
        self.trouble, self._fault, self._was_told_lost = "", "", False
        self._heard = asyncio.get_running_loop().time()
        self._on_found(self.address.name, hello.computers, hello.ended)
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
        match read_node_message(message):
            case NodePong():
                pass
            case NodeReply(id, result):
                reply = self._find_waiting(id)
                if reply is not None:
                    reply.set_result(result)
            case NodeRefusal(id, error):
                reply = self._find_waiting(id)
                if reply is not None:
                    reply.set_exception(read_error(error))
            case ComputerEnded() | ComputerWords() | ComputerEvent() as notice:
                self._on_notice(self.address.name, notice)
            case other:
                assert_never(other)

    def _find_waiting(self, id: int) -> "asyncio.Future[Any] | None":
        reply = self._replies.get(id)
        return None if reply is None or reply.done() else reply

    def _cut_streams(self) -> None:
        """Nothing waits for a node that is silent: TCP alone would wait for many minutes."""
        for writer in list(self._streams):
            writer.transport.abort()

    def _disconnect(self) -> None:
        if self._control is not None:
            self._control.transport.abort()
        self._control, self._writer = None, None
        self.connected.clear()
        for reply in self._replies.values():
            if not reply.done():
                error = FreeholdError("fleet.lost", f"The connection to the node {self.address.name} was lost")
                reply.set_exception(error)
                with contextlib.suppress(FreeholdError):
                    reply.exception()
