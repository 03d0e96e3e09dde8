"""Byte streams to the guest of a virtual machine, over one port. Whoever connects to the computer's socket gets one.

The other end is `vm_init.py`. Each stream has credit in both directions, so that one that is not read stops alone.
"""

import asyncio
import socket
import struct
from collections.abc import Callable

HEAD = struct.Struct(">BII")
OPEN, DATA, CREDIT, CLOSE, ENDED, PAUSE, PAUSED, RESUME = range(1, 9)
WINDOW = 256 * 1024
MAX_PAYLOAD = 64 * 1024


class ClientStream(asyncio.Protocol):
    """One connection of a client of the host. `credit` is what the machine still takes."""

    def __init__(self, relay: "StreamRelay") -> None:
        self._relay = relay
        self._transport: asyncio.Transport | None = None
        self._credit = WINDOW
        self._consumed = 0
        self._is_paused = False
        self.number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=WINDOW)
        self.number = self._relay.add(self)

    def data_received(self, data: bytes) -> None:
        self._credit -= len(data)
        self._relay.send_data(self.number, data)
        if self._credit <= 0 and self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._relay.remove(self)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._grant()

    def take(self, data: bytes) -> None:
        """Bytes of the machine. Credit is given back when the client has read them."""
        self._consumed += len(data)
        if self._consumed > 2 * WINDOW:  # it has sent more than it was granted
            self.abort()
        elif self._transport is not None:
            self._transport.write(data)
            self._grant()

    def _grant(self) -> None:
        if not self._is_paused and self._consumed >= WINDOW // 4:
            self._relay.send(CREDIT, self.number, self._consumed)
            self._consumed = 0

    def add_credit(self, amount: int) -> None:
        was_stopped = self._credit <= 0
        self._credit = min(self._credit + amount, WINDOW)
        if was_stopped and self._credit > 0 and self._transport is not None:
            self._transport.resume_reading()

    def end(self) -> None:
        """The machine closed it: the client reads what is left, and then the end."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class MachinePort(asyncio.Protocol):
    """The connection to the port of one machine."""

    def __init__(self, relay: "StreamRelay") -> None:
        self._relay = relay
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._relay.lose(self)

    def data_received(self, data: bytes) -> None:
        self._relay.receive(self, data)

    def write(self, frames: bytes) -> None:
        if self._transport is not None:
            self._transport.write(frames)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class StreamRelay:
    """Connected to the machine's port. `on_ended` is called with the exit status of the guest.

    Between `pause` and `resume` nothing is on its way in either direction: what clients send is kept here.
    """

    def __init__(self, on_ended: Callable[[int], None]) -> None:
        self._on_ended = on_ended
        self._port: MachinePort | None = None
        self._clients: dict[int, ClientStream] = {}
        self._server: asyncio.Server | None = None
        self._inbox = bytearray()
        self._kept: bytearray | None = None
        self._paused: asyncio.Future[None] | None = None
        self._last = 0

    async def open(self, port: socket.socket, listener: socket.socket) -> None:
        """Serve the clients that connect to `listener`, until `close`."""
        loop = asyncio.get_running_loop()
        _, self._port = await loop.create_connection(lambda: MachinePort(self), sock=port)
        self._server = await loop.create_unix_server(lambda: ClientStream(self), sock=listener)

    async def pause(self, timeout: float) -> None:
        """Returns when the machine has got everything and sends nothing more. Raises TimeoutError, and then it goes on."""
        self._paused = asyncio.get_running_loop().create_future()
        self._write(HEAD.pack(PAUSE, 0, 0))
        self._kept = bytearray()
        try:
            async with asyncio.timeout(timeout):
                await self._paused
        except BaseException:
            self.resume()
            raise
        finally:
            self._paused = None

    def resume(self) -> None:
        """Go on with the port that there is. Idempotent."""
        kept, self._kept = self._kept, None
        if kept is not None:
            self._write(HEAD.pack(RESUME, 0, 0) + bytes(kept))

    def detach(self) -> None:
        """Let go of the port of a machine that is paused, and not of the clients."""
        port, self._port = self._port, None
        self._inbox.clear()
        if port is not None:
            port.abort()

    async def attach(self, port: socket.socket) -> None:
        """Go on with the port of the machine that was loaded."""
        _, self._port = await asyncio.get_running_loop().create_connection(lambda: MachinePort(self), sock=port)
        self.resume()

    def close(self) -> None:
        """Idempotent."""
        if self._server is not None:
            self._server.close()
        if self._paused is not None and not self._paused.done():
            self._paused.set_exception(ConnectionError("the machine has ended"))
        if self._port is not None:
            self._port.abort()
        for client in list(self._clients.values()):
            client.abort()

    def add(self, client: ClientStream) -> int:
        self._last = self._last % 0x7FFF_FFFF + 1
        self._clients[self._last] = client
        self.send(OPEN, self._last, 0)
        return self._last

    def remove(self, client: ClientStream) -> None:
        if self._clients.pop(client.number, None) is not None:
            self.send(CLOSE, client.number, 0)

    def send(self, kind: int, number: int, amount: int) -> None:
        self._write(HEAD.pack(kind, number, amount))

    def send_data(self, number: int, data: bytes) -> None:
        for start in range(0, len(data), MAX_PAYLOAD):
            part = data[start : start + MAX_PAYLOAD]
            self._write(HEAD.pack(DATA, number, len(part)) + part)

    def _write(self, frames: bytes) -> None:
        if self._kept is not None:
            self._kept += frames
        elif self._port is not None:
            self._port.write(frames)

    def lose(self, port: MachinePort) -> None:
        """The connection has ended. One that was let go of is of no interest."""
        if port is self._port:
            self._port = None
            self.close()

    def receive(self, port: MachinePort, data: bytes) -> None:
        if port is not self._port:
            return
        self._inbox += data
        while len(self._inbox) >= HEAD.size:
            kind, number, amount = HEAD.unpack_from(self._inbox)
            size = HEAD.size + (amount if kind == DATA else 0)
            if kind == DATA and amount > MAX_PAYLOAD:
                self.close()  # it breaks the framing: nothing after this can be read
                return
            if len(self._inbox) < size:
                return
            content = bytes(self._inbox[HEAD.size : size])
            del self._inbox[:size]
            self._take(kind, number, amount, content)

    def _take(self, kind: int, number: int, amount: int, content: bytes) -> None:
        if kind == ENDED:
            self._on_ended(amount & 0xFF)
            return
        if kind == PAUSED:
            if self._paused is not None and not self._paused.done():
                self._paused.set_result(None)
            return
        client = self._clients.get(number)
        if client is None:
            return
        if kind == DATA:
            client.take(content)
        elif kind == CREDIT:
            client.add_credit(amount)
        elif kind == CLOSE:
            del self._clients[number]
            client.end()
