"""Asking the keeper, from another process of the same owner.

`call_keeper` and `follow_keeper` are for the command line and import next to nothing; `KeeperClient` is for programs
with an event loop. Both raise the error the keeper answered, or `keeper.not-running`.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING, Any

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.wire import MAX_ANSWER, decode, encode, error_of, not_running

if TYPE_CHECKING:
    import asyncio

PATIENCE = 60.0


def call_keeper(home: Home, method: str, params: dict[str, Any] | None = None, *, timeout: float = PATIENCE) -> Any:
    """The result of one call."""
    for message in _ask(home, method, params, timeout):
        if "result" in message:
            return message["result"]
    raise _cut_off(method)


def follow_keeper(home: Home, method: str, params: dict[str, Any] | None = None) -> Iterator[Any]:
    """The events of one stream, until it ends or the caller stops iterating."""
    for message in _ask(home, method, params, None):
        if "event" in message:
            yield message["event"]
        elif "end" in message:
            return
    raise _cut_off(method)


def _ask(home: Home, method: str, params: dict[str, Any] | None, timeout: float | None) -> Iterator[dict[str, Any]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(str(home.keeper_socket))
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            raise not_running(home) from None
        except PermissionError:
            raise _not_yours(home) from None
        try:
            connection.sendall(encode({"id": 1, "method": method, "params": params or {}}))
            with connection.makefile("rb") as answers:
                while line := answers.readline(MAX_ANSWER):
                    yield _checked(decode(line))
        except TimeoutError:
            raise _silent(method, timeout) from None
        except ConnectionError:
            raise _cut_off(method) from None


class KeeperClient:
    """Calls and streams from a program with an event loop. Holds no connection between calls, so it never goes stale."""

    def __init__(self, home: Home, *, timeout: float = PATIENCE) -> None:
        self.home = home
        self._timeout = timeout

    async def call(self, method: str, params: dict[str, Any] | None = None, *, timeout: float | None = None) -> Any:
        import asyncio

        patience = self._timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(patience):
                reader, writer = await self._connect(asyncio)
                try:
                    writer.write(encode({"id": 1, "method": method, "params": params or {}}))
                    while line := await _line(reader, method):
                        message = _checked(decode(line))
                        if "result" in message:
                            return message["result"]
                finally:
                    writer.close()
        except TimeoutError:
            raise _silent(method, patience) from None
        raise _cut_off(method)

    async def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Asks without waiting for the answer: for what ends the one who asks. The keeper finishes it all the same."""
        import asyncio

        try:
            async with asyncio.timeout(self._timeout):
                _, writer = await self._connect(asyncio)
                try:
                    writer.write(encode({"id": 1, "method": method, "params": params or {}}))
                    await writer.drain()
                finally:
                    writer.close()
        except ConnectionError:
            raise _cut_off(method) from None
        except TimeoutError:
            raise _silent(method, self._timeout) from None

    async def stream(self, method: str, params: dict[str, Any] | None = None) -> AsyncGenerator[Any, None]:
        """The events of one stream. Close the iterator (`aclosing`) to end it early."""
        import asyncio

        reader, writer = await self._connect(asyncio)
        try:
            writer.write(encode({"id": 1, "method": method, "params": params or {}}))
            while line := await _line(reader, method):
                message = _checked(decode(line))
                if "event" in message:
                    yield message["event"]
                elif "end" in message:
                    return
        finally:
            writer.close()
        raise _cut_off(method)

    async def _connect(self, asyncio: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            reader, writer = await asyncio.open_unix_connection(str(self.home.keeper_socket), limit=MAX_ANSWER)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            raise not_running(self.home) from None
        except PermissionError:
            raise _not_yours(self.home) from None
        return reader, writer


async def _line(reader: asyncio.StreamReader, method: str) -> bytes:
    try:
        return await reader.readline()
    except ConnectionError:
        raise _cut_off(method) from None


def _checked(message: dict[str, Any]) -> dict[str, Any]:
    error = message.get("error")
    if isinstance(error, dict):
        raise error_of(error)
    return message


def _cut_off(method: str) -> FreeholdError:
    return FreeholdError(
        "keeper.cut-off", f"The keeper closed the connection during {method}", hint="See why with: freehold logs keeper"
    )


def _silent(method: str, patience: float | None) -> FreeholdError:
    return FreeholdError(
        "keeper.silent",
        f"The keeper did not answer {method} within {patience:g} s",
        hint="See why with: freehold logs keeper",
    )


def _not_yours(home: Home) -> FreeholdError:
    return FreeholdError(
        "keeper.not-yours",
        f"The keeper of {home.root} belongs to another user",
        hint="Run this as the user who started it, or choose another Freehold with --home",
    )
