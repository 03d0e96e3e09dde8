"""What head, node and clients say to each other: messages with a length, and bytes that are relayed as they are."""

import asyncio
import json
import struct
from typing import Any

from freehold.errors import FreeholdError

PIECE = 256 * 1024
MAX_MESSAGE = 1024 * 1024
MAX_LISTING = 256 * 1024 * 1024
"""The list of the files of a computer, which has as many as its limit allows."""
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


async def relay(one: Stream, other: Stream) -> None:
    """Until either side ends; the link has no half-closed state."""
    tasks = [asyncio.ensure_future(_copy(one[0], other[1])), asyncio.ensure_future(_copy(other[0], one[1]))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, writer in (one, other):
            writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()


def describe_error(error: FreeholdError) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "hint": error.hint}


def read_error(body: object) -> FreeholdError:
    """An error that another process sent."""
    if isinstance(body, dict) and all(isinstance(body.get(name), str) for name in ("code", "message", "hint")):
        return FreeholdError(body["code"][:80], body["message"][:4000], hint=body["hint"][:1000])
    return FreeholdError("fleet.bad-message", "The other side reported an error that cannot be read")
