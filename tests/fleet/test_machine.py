"""A computer on another machine, seen by who started it, when the fleet goes and comes back. The fleet is a socket here."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.condition import until

from freehold.computer.contract.transport import InheritedSocket
from freehold.errors import FreeholdError
from freehold.fleet import machine as machine_module
from freehold.fleet.client_door import GREETING
from freehold.fleet.machine import RemoteMachine
from freehold.fleet.wire import encode_message, read_message

ISOLATION = {"backend": "bubblewrap", "version": "1", "runs_as": "me", "walls": [], "limits": {}}


class FleetSocket:
    """Answers as a head does. `usage` only while `answers`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: list[str] = []
        self.answers = True
        self.refuses = ""
        self.was_asked = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._serve, self.path)
        try:
            yield
        finally:
            server.close()
            for writer in self._writers:
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            writer.write(GREETING)
            await reader.readexactly(1)
            while True:
                self._answer(await read_message(reader), writer)

    def _answer(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        do = message["do"]
        self.asked.append(do)
        self.was_asked.set()
        if do == "adopt" and self.refuses:
            error = {"code": "computer.ended", "message": self.refuses, "hint": "Start another"}
            writer.write(encode_message({"error": error}))
        elif do in ("start", "adopt"):
            writer.write(
                encode_message({"started": {"id": "a" * 32, "node": "shed", "pid": 1, "isolation": ISOLATION}})
            )
        elif self.answers:
            writer.write(encode_message({"n": message["n"], "result": 0}))


@pytest.fixture
async def fleet_socket(tmp_path: Path) -> FleetSocket:
    return FleetSocket(tmp_path / "fleet.sock")


async def start(fleet: FleetSocket, tmp_path: Path) -> RemoteMachine:
    transport = InheritedSocket(tmp_path / "link")
    found = RemoteMachine(fleet.path, {}, transport)
    await found.begin()
    transport.publish()
    return found


async def test_a_request_waits_for_the_next_head(fleet_socket: FleetSocket, tmp_path: Path) -> None:
    """Both one that the head had heard, and one that is made while there is none."""
    async with fleet_socket.running():
        machine = await start(fleet_socket, tmp_path)
        fleet_socket.answers = False
        fleet_socket.was_asked.clear()
        heard = asyncio.ensure_future(machine.fetch_files())
        await fleet_socket.was_asked.wait()
    await until(lambda: not machine._connected.is_set())
    unheard = asyncio.ensure_future(machine.fetch_files())
    fleet_socket.answers = True
    async with fleet_socket.running():
        await asyncio.gather(heard, unheard)
        assert fleet_socket.asked == ["start", "fetch", "adopt", "fetch", "fetch"]
        await machine.stop(0)


@pytest.mark.parametrize("comes_back", [True, False])
async def test_who_waits_is_told_lost_when_the_computer_is_gone(
    fleet_socket: FleetSocket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    """The next head does not have it, or there is none."""
    monkeypatch.setattr(machine_module, "RETURN_SECONDS", 30.0 if comes_back else 0.3)
    ends: list[FreeholdError] = []
    async with fleet_socket.running():
        machine = await start(fleet_socket, tmp_path)
        machine.when_ended(ends.append)
        fleet_socket.answers, fleet_socket.refuses = False, "The node shed is lost"
        fleet_socket.was_asked.clear()
        asking = asyncio.ensure_future(machine.fetch_files())
        await fleet_socket.was_asked.wait()
    async with contextlib.AsyncExitStack() as stack:
        if comes_back:
            await stack.enter_async_context(fleet_socket.running())
        with pytest.raises(FreeholdError, match="The node shed is lost" if comes_back else "did not come back"):
            await asking
        assert await machine.wait() == -9
        assert [error.code for error in ends] == ["computer.ended"]
        await machine.stop(0)


async def test_a_computer_can_be_closed_while_there_is_no_fleet(
    fleet_socket: FleetSocket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_module, "STOP_MARGIN", 0.2)
    async with fleet_socket.running():
        machine = await start(fleet_socket, tmp_path)
    await machine.stop(0)
    assert await machine.wait() == -9
