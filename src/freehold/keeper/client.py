"""Sends calls to the keeper, from another process of the same user.

`call_keeper` is for the command line and imports very little; `KeeperClient` is for programs with an event loop. Both
raise the error that the keeper replied, `keeper.not-running`, or `keeper.bad-reply` for a reply of the wrong type.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, TypeVar

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.wire import MAX_REPLY, decode_message, encode_message, error_from_body, not_running_error
from freehold.observe.tracing import trace_parent
from freehold.typed_call import AnyRequest, TypedCall, TypedStream, decode_item, decode_reply, encode_request

if TYPE_CHECKING:
    import asyncio

Reply = TypeVar("Reply")
Item = TypeVar("Item")
CALL_TIMEOUT = 60.0
BAD_REPLY = "keeper.bad-reply"


def call_keeper(home: Home, call: TypedCall[Reply], *, timeout: float = CALL_TIMEOUT) -> Reply:
    """The reply to one call. Blocks."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(str(home.keeper_socket))
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            raise not_running_error(home) from None
        except PermissionError:
            raise _wrong_user_error(home) from None
        try:
            connection.sendall(_encode(call))
            with connection.makefile("rb") as replies:
                line = replies.readline(MAX_REPLY)
        except TimeoutError:
            raise _timeout_error(call.method, timeout) from None
        except ConnectionError:
            raise _cut_off_error(call.method) from None
    return _read_reply(call, line)


class KeeperClient:
    """Calls and streams from a program with an event loop. Each call has its own connection."""

    def __init__(self, home: Home, *, timeout: float = CALL_TIMEOUT) -> None:
        self.home = home
        self._timeout = timeout

    async def call(self, call: TypedCall[Reply], *, timeout: float | None = None) -> Reply:
        import asyncio

        seconds = self._timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                reader, writer = await self._connect()
                try:
                    writer.write(_encode(call))
                    line = await _read_line(reader, call.method)
                finally:
                    writer.close()
        except TimeoutError:
            raise _timeout_error(call.method, seconds) from None
        return _read_reply(call, line)

    async def send(self, call: TypedCall[Any]) -> None:
        """Send a call without waiting for the reply, for calls that end the caller. The keeper finishes the work."""
        import asyncio

        try:
            async with asyncio.timeout(self._timeout):
                _, writer = await self._connect()
                try:
                    writer.write(_encode(call))
                    await writer.drain()
                finally:
                    writer.close()
        except ConnectionError:
            raise _cut_off_error(call.method) from None
        except TimeoutError:
            raise _timeout_error(call.method, self._timeout) from None

    async def stream(self, stream: TypedStream[Item]) -> AsyncGenerator[Item, None]:
        """The items of one stream. Close the iterator (`contextlib.aclosing`) to end it early."""
        reader, writer = await self._connect()
        try:
            writer.write(_encode(stream))
            while line := await _read_line(reader, stream.method):
                message = _raise_error(decode_message(line))
                if "event" in message:
                    yield decode_item(stream, message["event"], BAD_REPLY)
                elif "end" in message:
                    return
        finally:
            writer.close()
        raise _cut_off_error(stream.method)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        import asyncio

        try:
            return await asyncio.open_unix_connection(str(self.home.keeper_socket), limit=MAX_REPLY)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            raise not_running_error(self.home) from None
        except PermissionError:
            raise _wrong_user_error(self.home) from None


def _encode(request: AnyRequest) -> bytes:
    """With the span of the caller, so that the keeper's span belongs to the same trace."""
    message: dict[str, Any] = {"id": 1, "method": request.method, "params": encode_request(request)}
    parent = trace_parent()
    return encode_message(message if parent is None else {**message, "trace": parent})


def _read_reply(call: TypedCall[Reply], line: bytes) -> Reply:
    if not line:
        raise _cut_off_error(call.method)
    message = _raise_error(decode_message(line))
    if "result" not in message:
        raise FreeholdError(BAD_REPLY, f"The reply to {call.method} has neither a result nor an error")
    return decode_reply(call, message["result"], BAD_REPLY)


async def _read_line(reader: asyncio.StreamReader, method: str) -> bytes:
    try:
        return await reader.readline()
    except ConnectionError:
        raise _cut_off_error(method) from None


def _raise_error(message: dict[str, Any]) -> dict[str, Any]:
    error = message.get("error")
    if isinstance(error, dict):
        raise error_from_body(error)
    return message


def _cut_off_error(method: str) -> FreeholdError:
    return FreeholdError(
        "keeper.cut-off", f"The keeper closed the connection during {method}", hint="See why with: freehold logs keeper"
    )


def _timeout_error(method: str, seconds: float) -> FreeholdError:
    return FreeholdError(
        "keeper.silent",
        f"The keeper did not answer {method} within {seconds:g} s",
        hint="See why with: freehold logs keeper",
    )


def _wrong_user_error(home: Home) -> FreeholdError:
    return FreeholdError(
        "keeper.not-yours",
        f"The keeper of {home.root} belongs to another user",
        hint="Run this as the user who started it, or choose another Freehold with --home",
    )
