"""What head, node and clients say to each other: messages with a length."""

import asyncio
import contextlib
import json
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from freehold.errors import FreeholdError

PIECE = 256 * 1024
MAX_MESSAGE = 1024 * 1024
MAX_STATUS = 256 * 1024 * 1024
"""What the head of this machine says of a fleet."""
MAX_ROWS = 1000
"""In one message. Lists of files are longer, and nobody else waits while all of one is read."""
_LENGTH = struct.Struct("!I")

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def encode_message(message: object) -> bytes:
    data = json.dumps(message, separators=(",", ":")).encode()
    return _LENGTH.pack(len(data)) + data


async def read_value(reader: asyncio.StreamReader, most: int = MAX_MESSAGE) -> Any:
    """The next message. Raises `fleet.bad-message`, and IncompleteReadError at the end of the stream."""
    size = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))[0]
    if size > most:
        raise FreeholdError("fleet.bad-message", f"A message of {size} bytes is longer than {most}")
    try:
        return json.loads(await reader.readexactly(size))
    except (ValueError, RecursionError) as error:
        raise FreeholdError("fleet.bad-message", "A message is not valid JSON") from error


async def read_message(reader: asyncio.StreamReader, most: int = MAX_MESSAGE) -> dict[str, Any]:
    found = await read_value(reader, most)
    if not isinstance(found, dict):
        raise FreeholdError("fleet.bad-message", "A message is not an object")
    return found


async def write_rows(writer: asyncio.StreamWriter, rows: Sequence[object]) -> None:
    """A list of any length, for `read_rows` at the other end."""
    for at in range(0, len(rows), MAX_ROWS):
        for message in _encode_rows(rows[at : at + MAX_ROWS]):
            writer.write(message)
            await writer.drain()
        await asyncio.sleep(0)  # a reader that is quick would keep everybody else waiting
    writer.write(encode_message([]))
    await writer.drain()


async def read_list(reader: asyncio.StreamReader) -> list[Any]:
    """The next message. Raises what the other side says instead of a list."""
    found = await read_value(reader)
    if isinstance(found, dict) and "error" in found:
        raise read_error(found["error"])
    if not isinstance(found, list):
        raise FreeholdError("fleet.bad-message", "A list is not valid")
    return found


async def read_rows(reader: asyncio.StreamReader, most: int) -> AsyncIterator[list[Any]]:
    """A few rows at a time. Raises `fleet.too-big` as soon as there are more than `most`, and what the other side says
    instead of them."""
    count = 0
    while rows := await read_list(reader):
        count += len(rows)
        if count > most:
            raise FreeholdError("fleet.too-big", f"A list of more than {most} was sent")
        yield rows


def _encode_rows(rows: Sequence[object]) -> Iterator[bytes]:
    message = encode_message(list(rows))
    if len(message) <= MAX_MESSAGE or len(rows) == 1:
        yield message
        return
    half = len(rows) // 2
    yield from _encode_rows(rows[:half])
    yield from _encode_rows(rows[half:])


def abort_stream(writer: asyncio.StreamWriter) -> None:
    """Idempotent, also after the transport was closed while it had something to write."""
    with contextlib.suppress(AttributeError):  # asyncio: it has forgotten its loop then
        writer.transport.abort()


def describe_error(error: FreeholdError) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "hint": error.hint}


def read_error(body: object) -> FreeholdError:
    """An error that another process sent."""
    if isinstance(body, dict) and all(isinstance(body.get(name), str) for name in ("code", "message", "hint")):
        return FreeholdError(body["code"][:80], body["message"][:4000], hint=body["hint"][:1000])
    return FreeholdError("fleet.bad-message", "The other side reported an error that cannot be read")
