"""How the host reaches the guest of one machine."""

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from freehold.errors import FreeholdError

_BACKLOG = 128
_MAX_PATH = 100

LinkProtocol = TypeVar("LinkProtocol", bound=asyncio.BaseProtocol)


class Transport(Protocol):
    """A way to open byte streams to one guest.

    `Backend.make_transport` creates it and `Backend.start` brings it to life. It may be a listening unix socket that
    the guest inherits, a socket in a shared volume, vsock, or TCP with TLS: the link on top is the same. Each stream is
    reliable, ordered and private: only the host's own user may open one.
    """

    @property
    def address(self) -> str:
        """Where it leads, for messages and logs."""
        ...

    async def connect(self, make_protocol: Callable[[], LinkProtocol]) -> LinkProtocol:
        """Open one stream to the guest. Raises OSError when no guest answers."""
        ...

    def publish(self) -> None:
        """Let clients connect. Called once, after `Backend.start` has returned. Connections made now wait for the guest."""
        ...

    def close(self) -> None:
        """Release what the transport holds on the host. Idempotent.

        Called after a failed start. A machine calls it at its end, if its transport holds something until then.
        """
        ...


class SocketTransport:
    """A guest that is reached at a unix socket of this host."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def address(self) -> str:
        return str(self.path)

    async def connect(self, make_protocol: Callable[[], LinkProtocol]) -> LinkProtocol:
        _, protocol = await asyncio.get_running_loop().create_unix_connection(make_protocol, str(self.path))
        return protocol

    def publish(self) -> None:
        return

    def close(self) -> None:
        return


class InheritedSocket(SocketTransport):
    """A listening unix socket on the host, whose descriptor the backend hands to the guest.

    The socket gets its final name only in `publish`, when every wall stands and every limit is set: a client that keeps
    trying cannot connect before that. A stale socket of that name is replaced.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._draft = path.with_name(f"{path.name}.{os.urandom(3).hex()}")
        self._listener: socket.socket | None = None

    def listen(self) -> socket.socket:
        """The listening socket, for the guest to inherit. This object owns it; only this user may connect to it."""
        if self._listener is None:
            self._listener = listen_at(self._draft)
        return self._listener

    def publish(self) -> None:
        self._draft.replace(self.path)
        self.close()  # the guest has its own copy of the descriptor

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._draft.unlink(missing_ok=True)


def listen_at(path: Path) -> socket.socket:
    """A listening unix socket that only this user may connect to. Raises `computer.bad-socket`."""
    if len(os.fsencode(path)) > _MAX_PATH:
        raise FreeholdError(
            "computer.bad-socket",
            f"The socket path {path} is longer than {_MAX_PATH} bytes",
            hint="Choose a shorter folder with --home",
        )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)  # no client can connect before `listen`
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise FreeholdError("computer.bad-socket", f"Cannot listen at {path}: {error.strerror}") from error
    return listener
