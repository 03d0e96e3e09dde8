"""A client's connection to the fleet of this machine."""

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from freehold.errors import FreeholdError
from freehold.fleet.wire import MAX_STATUS, PIECE, Stream, encode_message, read_error, read_message

CONNECT_TIMEOUT = 10.0


async def open_fleet(path: Path, handed: Sequence[int] = ()) -> Stream:
    """Connect, and hand over descriptors. Raises `fleet.not-running`."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    with contextlib.ExitStack() as undo:  # also when the caller is cancelled
        undo.callback(connection.close)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await asyncio.get_running_loop().sock_connect(connection, str(path))
                socket.send_fds(connection, [b"+"], list(handed))
                reader, writer = await asyncio.open_unix_connection(sock=connection, limit=PIECE)
                undo.callback(writer.transport.abort)
                if not await reader.readline():
                    raise ConnectionResetError("it closed the connection")
        except (OSError, TimeoutError) as error:
            raise FreeholdError(
                "fleet.not-running",
                f"The fleet does not answer at {path}: {error}",
                hint="Set enabled = true below [fleet] in freehold.toml, then: freehold up",
            ) from None
        undo.pop_all()
        return reader, writer


async def ask_fleet(path: Path, do: str, **more: Any) -> Any:
    """One request with one answer."""
    reader, writer = await open_fleet(path)
    try:
        writer.write(encode_message({"do": do, **more}))
        answer = await read_message(reader, MAX_STATUS)
    except (OSError, asyncio.IncompleteReadError):
        raise FreeholdError("fleet.not-running", "The fleet ended before it answered") from None
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    if "error" in answer:
        raise read_error(answer["error"])
    return answer["result"]
