"""Terminals of the computer in a browser: they outlive the page, and a page that comes back sees what it missed."""

import asyncio
import contextlib
from typing import Annotated, Literal

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from freehold.computer.terminal import Terminal, TerminalInfo
from freehold.errors import FreeholdError
from freehold.gateway.guard import principal_of
from freehold.gateway.house import House
from freehold.gateway.needs import needs
from freehold.gateway.noting import note

MAX_TERMINALS = 32
# What a browser is sent at once: small enough that Ctrl-C is felt while output floods.
PIECE = 32 * 1024
ENDED = 4410
GONE = 4404
TOLD_EVERY = 1.0
WORKED = "worked in a terminal"

Rows = Annotated[int, Field(ge=2, le=500)]
Columns = Annotated[int, Field(ge=2, le=1000)]


class TerminalRow(BaseModel):
    """A terminal that is open, or has ended and was not yet looked at."""

    id: str
    command: list[str]
    rows: int
    columns: int
    began: float
    viewers: int
    ended: bool


class OpenTerminal(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rows: Rows = 24
    columns: Columns = 80
    folder: str = Field(default="/workspace", max_length=4096)


class Resize(BaseModel):
    model_config = ConfigDict(extra="forbid")
    type: Literal["resize"]
    rows: Rows
    columns: Columns


class TerminalClosed(BaseModel):
    id: str


def _row(info: TerminalInfo) -> TerminalRow:
    return TerminalRow(
        id=info.id,
        command=list(info.command),
        rows=info.rows,
        columns=info.cols,
        began=info.began,
        viewers=info.viewers,
        ended=info.ended,
    )


def add_terminals(app: FastAPI, house: House) -> None:
    @app.get("/v1/terminals")
    @needs("terminal")
    async def list_terminals() -> list[TerminalRow]:
        """The terminals of the computer."""
        return [_row(info) for info in await house.sealed.computer.terminals()]

    @app.post("/v1/terminals", status_code=201)
    @needs("terminal")
    async def open_terminal(body: OpenTerminal, request: Request) -> TerminalRow:
        """Open one; connect to `/v1/terminals/{id}/socket` to use it."""
        computer = house.sealed.computer
        if len(await computer.terminals()) >= MAX_TERMINALS:
            raise FreeholdError(
                "terminal.too-many",
                f"There are already {MAX_TERMINALS} terminals",
                hint="Close one that is not needed",
            )
        terminal = await computer.terminal(rows=body.rows, cols=body.columns, cwd=body.folder)
        info = terminal.info
        assert info is not None  # an opened terminal has one
        await terminal.detach()
        who = principal_of(request.scope).who
        await asyncio.to_thread(house.timeline.append, "terminal.opened", {"terminal": info.id}, who=who)
        return _row(info)

    @app.delete("/v1/terminals/{terminal}")
    @needs("terminal")
    async def close_terminal(terminal: str, request: Request) -> TerminalClosed:
        """End everything that runs in it."""
        await house.sealed.computer.close_terminal(terminal)
        who = principal_of(request.scope).who
        await asyncio.to_thread(house.timeline.append, "terminal.closed", {"terminal": terminal}, who=who)
        await note(house, "during", _who(terminal), WORKED)
        return TerminalClosed(id=terminal)

    @needs("terminal")
    async def terminal_socket(websocket: WebSocket) -> None:
        """Binary frames are keystrokes in and output out; the text frame {"type": "resize", rows, columns} resizes."""
        await websocket.accept()
        try:
            terminal = await house.sealed.computer.attach(websocket.path_params["terminal"])
        except FreeholdError as error:
            await websocket.close(GONE, error.message[:100])
            return
        used = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                telling = group.create_task(_tell(house, websocket.path_params["terminal"], used))
                await _converse(websocket, terminal, used)
                telling.cancel()
        finally:
            await terminal.detach()

    app.router.routes.append(WebSocketRoute("/v1/terminals/{terminal}/socket", terminal_socket))


async def _converse(websocket: WebSocket, terminal: Terminal, used: asyncio.Event) -> None:
    """Both ways at once, until either side is done. Each waits for the other: nothing piles up between them."""
    async with asyncio.TaskGroup() as group:
        outward = group.create_task(_show(websocket, terminal, used))
        inward = group.create_task(_type(websocket, terminal, used))
        await asyncio.wait({outward, inward}, return_when=asyncio.FIRST_COMPLETED)
        outward.cancel()
        inward.cancel()


async def _show(websocket: WebSocket, terminal: Terminal, used: asyncio.Event) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while data := await terminal.read(PIECE):
            used.set()
            await websocket.send_bytes(data)
        await websocket.close(ENDED, "the program in this terminal has ended")


async def _type(websocket: WebSocket, terminal: Terminal, used: asyncio.Event) -> None:
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        if message.get("bytes") is not None:
            used.set()
            await terminal.write(message["bytes"])
            continue
        try:
            resize = Resize.model_validate_json(message.get("text") or "")
        except ValidationError:
            await websocket.close(4400, "not a message a terminal knows")
            return
        terminal.resize(resize.rows, resize.columns)


async def _tell(house: House, terminal: str, used: asyncio.Event) -> None:
    """History hears that a terminal is in use, soon and not too often; nobody who types waits for that."""
    while True:
        await used.wait()
        used.clear()
        await note(house, "during", _who(terminal), WORKED)
        await asyncio.sleep(TOLD_EVERY)


def _who(terminal: str) -> dict[str, str]:
    return {"by": "terminal", "terminal": terminal}
