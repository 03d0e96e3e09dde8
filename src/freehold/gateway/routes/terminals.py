"""Terminals of the computer. They survive the browser; a page that returns gets the output that it missed."""

import asyncio
import contextlib
import os
import time
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Request
from pydantic import BaseModel, Field, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from freehold.computer.contract.conventions import WORKSPACE
from freehold.computer.library.terminal import Terminal, TerminalInfo
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.history_notes import send_history_note
from freehold.gateway.inputs import MAX_ID, PathText, RequestBody, UrlId, read_path
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, post, websocket
from freehold.gateway.services import Services
from freehold.gateway.terminal_filter import TerminalFilter
from freehold.history.calls import RequestAuthor

MAX_TERMINALS = 32
# Output is sent in pieces of this size, small enough that Ctrl-C works during a flood of output.
READ_SIZE = 32 * 1024
FAIR_SHARE = 0.02
"""Seconds. After output that took longer to filter, as much time is left to all others."""
CLOSE_ENDED = 4410
CLOSE_NOT_FOUND = 4404
NOTE_INTERVAL = 1.0
TERMINAL_REASON = "worked in a terminal"

Rows = Annotated[int, Field(ge=2, le=500)]
Columns = Annotated[int, Field(ge=2, le=1000)]


class TerminalInfoBody(BaseModel):
    """A terminal that is open, or that has ended and was not viewed since."""

    id: str
    command: list[str]
    rows: int
    columns: int
    began: datetime
    viewers: int
    ended: bool


class OpenTerminalBody(RequestBody):
    rows: Rows = 24
    columns: Columns = 80
    folder: PathText = WORKSPACE


class ResizeTerminalBody(RequestBody):
    type: Literal["resize"]
    rows: Rows
    columns: Columns


class TerminalClosedBody(BaseModel):
    id: str


def _to_info(info: TerminalInfo) -> TerminalInfoBody:
    return TerminalInfoBody(
        id=info.id,
        command=list(info.command),
        rows=info.rows,
        columns=info.cols,
        began=to_moment(info.began),
        viewers=info.viewers,
        ended=info.ended,
    )


class TerminalRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    @get("/v1/terminals", scope="terminal")
    async def list_terminals(self) -> list[TerminalInfoBody]:
        """The terminals of the computer."""
        return [_to_info(info) for info in await self._services.computer.terminals()]

    @post("/v1/terminals", status_code=201, scope="terminal")
    async def open_terminal(self, body: OpenTerminalBody, request: Request) -> TerminalInfoBody:
        """Open a terminal. Connect to `/v1/terminals/{id}/socket` to use it."""
        computer = self._services.computer
        if len(await computer.terminals()) >= MAX_TERMINALS:
            raise FreeholdError(
                "terminal.too-many",
                f"There are already {MAX_TERMINALS} terminals",
                hint="Close one that you do not need",
            )
        folder = os.fsdecode(read_path(body.folder))
        try:
            terminal = await computer.terminal(rows=body.rows, cols=body.columns, cwd=folder)
        except FreeholdError as error:
            if error.code != "computer.bad-folder" or folder != WORKSPACE:
                raise
            # A program inside has taken the permissions of the workspace. The owner can give them back from here.
            terminal = await computer.terminal(rows=body.rows, cols=body.columns, cwd="/")
        info = terminal.info
        assert info is not None  # always set for an opened terminal
        await terminal.detach()
        who = principal_of(request.scope).who
        await asyncio.to_thread(self._services.timeline.append, "terminal.opened", {"terminal": info.id}, who=who)
        return _to_info(info)

    @delete("/v1/terminals/{terminal}", scope="terminal")
    async def close_terminal(self, terminal: UrlId, request: Request) -> TerminalClosedBody:
        """Close a terminal and end its programs."""
        await self._services.computer.close_terminal(terminal)
        who = principal_of(request.scope).who
        await asyncio.to_thread(self._services.timeline.append, "terminal.closed", {"terminal": terminal}, who=who)
        await send_history_note(self._services, "during", _who(terminal), TERMINAL_REASON)
        return TerminalClosedBody(id=terminal)

    @websocket("/v1/terminals/{terminal}/socket", scope="terminal")
    async def terminal_socket(self, socket: WebSocket) -> None:
        """Binary frames carry input and output; output is filtered. The text frame {"type": "resize", rows, columns} resizes."""
        await socket.accept()
        name = str(socket.path_params["terminal"])
        if len(name) > MAX_ID:
            await socket.close(CLOSE_NOT_FOUND, "there is no such terminal")
            return
        try:
            terminal = await self._services.computer.attach(name)
        except FreeholdError as error:
            await socket.close(CLOSE_NOT_FOUND, error.message[:100])
            return
        used = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                noting = group.create_task(_note_use(self._services, name, used))
                await _copy_both_ways(socket, terminal, used)
                noting.cancel()
        finally:
            await terminal.detach()


async def _copy_both_ways(socket: WebSocket, terminal: Terminal, used: asyncio.Event) -> None:
    """Copy in both directions until one side ends. Each direction waits for its receiver, so nothing is buffered."""
    async with asyncio.TaskGroup() as group:
        outward = group.create_task(_send_output(socket, terminal, used))
        inward = group.create_task(_receive_input(socket, terminal, used))
        await asyncio.wait({outward, inward}, return_when=asyncio.FIRST_COMPLETED)
        outward.cancel()
        inward.cancel()


async def _send_output(socket: WebSocket, terminal: Terminal, used: asyncio.Event) -> None:
    output_filter = TerminalFilter()
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while data := await terminal.read(READ_SIZE):
            used.set()
            began = time.monotonic()
            drawable = output_filter.feed(data)
            spent = time.monotonic() - began
            if drawable:
                await socket.send_bytes(drawable)
            if spent > FAIR_SHARE:
                await asyncio.sleep(spent)
        await socket.close(CLOSE_ENDED, "the program in this terminal has ended")


async def _receive_input(socket: WebSocket, terminal: Terminal, used: asyncio.Event) -> None:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        if message.get("bytes") is not None:
            used.set()
            await terminal.write(message["bytes"])
            continue
        try:
            resize = ResizeTerminalBody.model_validate_json(message.get("text") or "")
        except ValidationError:
            await socket.close(4400, "not a valid message for a terminal")
            return
        terminal.resize(resize.rows, resize.columns)


async def _note_use(services: Services, terminal: str, used: asyncio.Event) -> None:
    """Note in history that a terminal is in use, at most once a second, without delaying input."""
    while True:
        await used.wait()
        used.clear()
        await send_history_note(services, "during", _who(terminal), TERMINAL_REASON)
        await asyncio.sleep(NOTE_INTERVAL)


def _who(terminal: str) -> RequestAuthor:
    return RequestAuthor(by="terminal", terminal=terminal)
