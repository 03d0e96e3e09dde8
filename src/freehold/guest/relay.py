"""Connections to ports inside, and from inside to handlers on the host."""

from __future__ import annotations

import _socket

from freehold.guest.kernel import os
from freehold.guest.link import Operation
from freehold.guest.loop import READ, WRITE, log_error
from freehold.guest.spawn import OperationError, to_bytes
from freehold.guest.streams import StreamSink, StreamSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from freehold.guest.link import GuestChannel
    from freehold.guest.loop import Loop

MAX_ACCEPTED = 768
"""Open connections of one link's listeners; more wait in the kernel's queue. Below the limit of the host."""
IN_PROGRESS = 115
FLUSH_TIMEOUT = 10.0
BACKLOG = 128
RESET_ON_CLOSE = b"\1\0\0\0\0\0\0\0"
"""SO_LINGER value with which closing resets the connection: the client learns that no one serves the port."""
ADDRESS = "127.0.0.1"


class SocketSink(StreamSink):
    """The writing half of a connection. Closing it shuts down writing; reading goes on."""

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


class GuestRelay(Operation):
    """One connection on one channel. Owns the socket."""

    def __init__(self, loop: Loop, channel: GuestChannel, connection: _socket.socket) -> None:
        self._loop = loop
        self._channel = channel
        descriptor = connection.detach()
        try:
            other = os.dup(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        self._sink = SocketSink(loop, channel, 0, other)
        self._source = StreamSource(loop, channel, 0, descriptor, self._settle)

    def data(self, stream: int, payload: bytes) -> None:
        self._sink.write(payload)

    def end(self, stream: int) -> None:
        self._sink.end()
        self._settle()

    def credited(self) -> None:
        self._source.resume()

    def closed(self) -> None:
        """Close as a socket does: data that was written before still arrives, if it is read within FLUSH_TIMEOUT."""
        self._source.close()
        self._sink.end()
        if self._sink.live:
            self._loop.call_later(FLUSH_TIMEOUT, self._sink.close)

    def _settle(self) -> None:
        if not self._source.live and not self._sink.live:
            self._channel.finish()


class GuestForward(Operation):
    """Connects to a port or a unix socket inside, then becomes a relay."""

    def __init__(self, loop: Loop, channel: GuestChannel, message: dict[str, Any]) -> None:
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
        self._channel.send_message({"ok": True})
        relay = self._channel.operation = GuestRelay(self._loop, self._channel, self._socket)
        for stream, payload in self._early:
            if payload is None:
                relay.end(stream)
            else:
                relay.data(stream, payload)

    def _refuse(self, number: int) -> None:
        self._socket.close()
        self._channel.fail("computer.no-listener", f"The connection failed: {os.strerror(number)}")


class ReservedPorts:
    """Ports that only the host serves. The guest listens on them from its start to its end, connected to a host or not.

    Otherwise a program inside could listen there while the gateway restarts, and receive the tokens of sessions. It
    listens on every address: a program on [::1] or 127.0.0.2 would get the connections to `localhost` or to that name.
    There is no network but loopback here. While the host does not serve a port, connections to it are reset.
    """

    def __init__(self, loop: Loop, ports: Iterable[int]) -> None:
        self._loop = loop
        self._free: dict[int, _socket.socket] = {}
        for port in ports:
            held = _listen_everywhere(port)
            held.setblocking(False)
            self.release(port, held)

    def claim(self, port: object) -> _socket.socket | None:
        """The socket of a reserved port that the host does not serve yet; None for other ports."""
        held = self._free.pop(port, None) if isinstance(port, int) else None
        if held is not None:
            self._loop.forget(held.fileno())
        return held

    def release(self, port: int, held: _socket.socket) -> None:
        self._free[port] = held
        self._loop.watch(held.fileno(), READ, lambda events: _reset_connection(held))


def _listen_everywhere(port: int) -> _socket.socket:
    try:
        held = _socket.socket(_socket.AF_INET6, _socket.SOCK_STREAM)
    except OSError:  # a kernel without IPv6: nothing else can have an address of it either
        held = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        address = "0.0.0.0"  # noqa: S104 - there is only loopback
    else:
        held.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 0)
        address = "::"
    held.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    held.bind((address, port))
    held.listen(BACKLOG)
    return held


def _reset_connection(held: _socket.socket) -> None:
    try:
        descriptor, _ = held._accept()  # type: ignore[attr-defined]
    except OSError:
        return
    client = _socket.socket(fileno=descriptor)
    client.setsockopt(_socket.SOL_SOCKET, _socket.SO_LINGER, RESET_ON_CLOSE)
    client.close()


class GuestListener(Operation):
    """Listens inside. Each connection becomes a channel to the host."""

    def __init__(self, loop: Loop, channel: GuestChannel, message: dict[str, Any], held: ReservedPorts) -> None:
        self._loop = loop
        self._channel = channel
        self._path = b""
        self._held = held
        kept = held.claim(message.get("port"))
        self._kept = 0 if kept is None else int(message["port"])
        self._socket = kept or self._bind(message)
        self._socket.setblocking(False)
        channel.send_message({"ok": 0 if self._path else self._socket.getsockname()[1]})
        loop.watch(self._socket.fileno(), READ, self._accept_connection)

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
            raise OperationError(
                "computer.cannot-listen",
                f"Cannot listen at {message.get('port') or message.get('path')}: {error.strerror}",
            ) from None
        return opened

    def closed(self) -> None:
        self._loop.forget(self._socket.fileno())
        if self._kept:
            self._held.release(self._kept, self._socket)
        else:
            self._socket.close()
        if self._path:
            _remove_socket(self._path)

    def _accept_connection(self, events: int) -> None:
        link = self._channel.link
        if link.accepted >= MAX_ACCEPTED:
            self._pause()
            return
        try:
            descriptor, _ = self._socket._accept()  # type: ignore[attr-defined]
        except (BlockingIOError, InterruptedError, ConnectionError):
            return
        except OSError as error:
            log_error(error)
            self._pause()
            return
        connection = _socket.socket(fileno=descriptor)
        channel = link.open({"listener": self._channel.number})
        try:
            channel.operation = GuestRelay(self._loop, channel, connection)
        except OSError as error:
            log_error(error)
            channel.finish()

    def _pause(self) -> None:
        """Too many connections: leave new ones in the kernel's queue for a moment."""
        self._loop.forget(self._socket.fileno())
        self._loop.call_later(0.05, self._resume)

    def _resume(self) -> None:
        if self._channel.is_open:
            self._loop.watch(self._socket.fileno(), READ, self._accept_connection)


def _open(message: dict[str, Any]) -> tuple[_socket.socket, Any]:
    path = message.get("path")
    if path is not None:
        return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM), to_bytes(path)
    port = message.get("port")
    if not isinstance(port, int) or not 0 <= port < 65536:
        raise OperationError("computer.bad-request", f"{port!r} is not a port")
    opened = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    # Send small messages at once: waiting to fill a packet would cost 40 ms each. Accepted sockets inherit it.
    opened.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
    return opened, (ADDRESS, port)


def _remove_socket(path: bytes) -> None:
    """Remove a stale socket. Anything else at this path stays, and listening then fails."""
    try:
        if os.lstat(path).st_mode & 0o170000 == 0o140000:
            os.unlink(path)
    except OSError:
        return
