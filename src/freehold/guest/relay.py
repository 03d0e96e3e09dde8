"""Streams to ports inside, and from inside to handlers on the host."""

from __future__ import annotations

import _socket
import os

from freehold.guest.link import Operation
from freehold.guest.loop import READ, WRITE, complain
from freehold.guest.spawn import SpawnError, to_bytes
from freehold.guest.streams import Sink, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from freehold.guest.link import Channel
    from freehold.guest.loop import Loop

MAX_ACCEPTED = 768
"""Connections at once on one link's listeners; more wait in the kernel's queue. Below what the host puts up with."""
IN_PROGRESS = 115
FLUSH = 10.0
BACKLOG = 128
AT_ONCE = b"\1\0\0\0\0\0\0\0"
"""Closing resets the connection: what connects to a port that nobody answers at is told so."""
ADDRESS = "127.0.0.1"


class SocketSink(Sink):
    """The writing half of a connection: its end is told to the other side while reading goes on."""

    def close(self) -> None:
        if self.live:
            half = _socket.socket(fileno=os.dup(self._descriptor))
            try:
                half.shutdown(_socket.SHUT_WR)
            except OSError:
                pass
            finally:
                half.close()
        super().close()


class Relay(Operation):
    """One connection inside, on one channel. Owns the socket."""

    def __init__(self, loop: Loop, channel: Channel, connection: _socket.socket) -> None:
        self._loop = loop
        self._channel = channel
        descriptor = connection.detach()
        try:
            other = os.dup(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        self._sink = SocketSink(loop, channel, 0, other)
        self._source = Source(loop, channel, 0, descriptor, self._settle)

    def data(self, stream: int, payload: bytes) -> None:
        self._sink.put(payload)

    def end(self, stream: int) -> None:
        self._sink.end()
        self._settle()

    def credited(self) -> None:
        self._source.resume()

    def closed(self) -> None:
        """As when a socket is closed: what was written before still arrives, if it is taken within a while."""
        self._source.close()
        self._sink.end()
        if self._sink.live:
            self._loop.later(FLUSH, self._sink.close)

    def _settle(self) -> None:
        if not self._source.live and not self._sink.live:
            self._channel.finish()


class Forward(Operation):
    """Connects to a port or a socket inside, then hands over to a relay."""

    def __init__(self, loop: Loop, channel: Channel, message: dict[str, Any]) -> None:
        self._loop = loop
        self._channel = channel
        self._socket, address = _open(message)
        self._early: list[tuple[int, bytes | None]] = []
        self._socket.setblocking(False)
        number = self._socket.connect_ex(address)
        if number in (0, IN_PROGRESS):
            loop.watch(self._socket.fileno(), WRITE, self._connected)
        else:
            self._refuse(number)

    def data(self, stream: int, payload: bytes) -> None:
        self._early.append((stream, payload))

    def end(self, stream: int) -> None:
        self._early.append((stream, None))

    def closed(self) -> None:
        self._loop.forget(self._socket.fileno())
        self._socket.close()

    def _connected(self, events: int) -> None:
        self._loop.forget(self._socket.fileno())
        number = self._socket.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR)
        if number:
            self._refuse(number)
            return
        self._channel.say({"ok": True})
        relay = self._channel.operation = Relay(self._loop, self._channel, self._socket)
        for stream, payload in self._early:
            if payload is None:
                relay.end(stream)
            else:
                relay.data(stream, payload)

    def _refuse(self, number: int) -> None:
        self._socket.close()
        self._channel.fail("computer.no-listener", f"Nothing answers there: {os.strerror(number)}")


class Held:
    """Ports that are the host's: listened at from the guest's first moment to its last, whether the host is there or not.

    Else a program inside could take one while the gateway is restarted, and be given the tokens that sessions show there.
    While nobody has taken one, whoever connects is turned away.
    """

    def __init__(self, loop: Loop, ports: Iterable[int]) -> None:
        self._loop = loop
        self._free: dict[int, _socket.socket] = {}
        for port in ports:
            held, address = _open({"port": port})
            held.bind(address)
            held.listen(BACKLOG)
            held.setblocking(False)
            self.give_back(port, held)

    def take(self, port: object) -> _socket.socket | None:
        """If it is one of them, and free."""
        held = self._free.pop(port, None) if isinstance(port, int) else None
        if held is not None:
            self._loop.forget(held.fileno())
        return held

    def give_back(self, port: int, held: _socket.socket) -> None:
        self._free[port] = held
        self._loop.watch(held.fileno(), READ, lambda events: _turn_away(held))


def _turn_away(held: _socket.socket) -> None:
    try:
        descriptor, _ = held._accept()  # type: ignore[attr-defined]
    except OSError:
        return
    stranger = _socket.socket(fileno=descriptor)
    stranger.setsockopt(_socket.SOL_SOCKET, _socket.SO_LINGER, AT_ONCE)
    stranger.close()


class Listener(Operation):
    """Listens inside; each connection becomes a channel towards the host."""

    def __init__(self, loop: Loop, channel: Channel, message: dict[str, Any], held: Held) -> None:
        self._loop = loop
        self._channel = channel
        self._path = b""
        self._held = held
        kept = held.take(message.get("port"))
        self._kept = 0 if kept is None else int(message["port"])
        self._socket = kept or self._bind(message)
        self._socket.setblocking(False)
        channel.say({"ok": 0 if self._path else self._socket.getsockname()[1]})
        loop.watch(self._socket.fileno(), READ, self._knock)

    def _bind(self, message: dict[str, Any]) -> _socket.socket:
        opened, address = _open(message)
        try:
            opened.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
            if isinstance(address, bytes):
                _remove_socket(address)
                self._path = address
            opened.bind(address)
            opened.listen(BACKLOG)
        except OSError as error:
            opened.close()
            raise SpawnError(
                "computer.cannot-listen",
                f"Cannot listen at {message.get('port') or message.get('path')}: {error.strerror}",
            ) from None
        return opened

    def closed(self) -> None:
        self._loop.forget(self._socket.fileno())
        if self._kept:
            self._held.give_back(self._kept, self._socket)
        else:
            self._socket.close()
        if self._path:
            _remove_socket(self._path)

    def _knock(self, events: int) -> None:
        link = self._channel.link
        if link.accepted >= MAX_ACCEPTED:
            self._rest()
            return
        try:
            descriptor, _ = self._socket._accept()  # type: ignore[attr-defined]
        except (BlockingIOError, InterruptedError, ConnectionError):
            return
        except OSError as error:
            complain(error)
            self._rest()
            return
        connection = _socket.socket(fileno=descriptor)
        channel = link.open({"listener": self._channel.number})
        try:
            channel.operation = Relay(self._loop, channel, connection)
        except OSError as error:
            complain(error)
            channel.finish()

    def _rest(self) -> None:
        """Full: leave the others in the kernel's queue for a moment."""
        self._loop.forget(self._socket.fileno())
        self._loop.later(0.05, self._wake)

    def _wake(self) -> None:
        if self._channel.open:
            self._loop.watch(self._socket.fileno(), READ, self._knock)


def _open(message: dict[str, Any]) -> tuple[_socket.socket, Any]:
    path = message.get("path")
    if path is not None:
        return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM), to_bytes(path)
    port = message.get("port")
    if not isinstance(port, int) or not 0 <= port < 65536:
        raise SpawnError("computer.bad-request", f"{port!r} is not a port")
    opened = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    # What is relayed goes on at once: waiting to fill a packet costs 40 ms a small message. Accepted ones inherit it.
    opened.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    return opened, (ADDRESS, port)


def _remove_socket(path: bytes) -> None:
    """Only ever a socket: a name that somebody put a file at is left, and then cannot be listened at."""
    try:
        if os.lstat(path).st_mode & 0o170000 == 0o140000:
            os.unlink(path)  # noqa: PTH108 - pathlib is too slow to import here
    except OSError:
        return
