"""The network between head and node is cut in the middle of twenty computers at work. Both go on, and see nothing of it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.fleet.fleet_work import AT_WORK, SMALL, remote
from tests.fleet.one_node import OneNode, one_node
from tests.support.condition import until

from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.fleet import head as head_module
from freehold.fleet import host as host_module
from freehold.fleet import node_link


class Cable:
    """Passes connections on to a port. While it is cut nothing arrives, and nobody is told. Later what was sent does."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._whole = asyncio.Event()
        self._whole.set()

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pass_on(reader, far_writer))
            group.create_task(self._pass_on(far_reader, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._whole.wait()
                writer.write(data)
                await writer.drain()
        await self._whole.wait()
        writer.close()


@contextlib.asynccontextmanager
async def with_cable(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[OneNode, Cable]]:
    monkeypatch.setattr(node_link, "PING_PAUSE", 0.05)
    monkeypatch.setattr(head_module, "ADOPT_SECONDS", 0.0)
    async with one_node() as fleet:
        known = fleet.head.known["shed"]
        cable = Cable(known.port)
        server = await asyncio.start_server(cable.accept, "127.0.0.1", 0)
        async with server:
            fleet.head.add_node(replace(known, port=server.sockets[0].getsockname()[1]))
            await until(lambda: not fleet.head.list_blocked())
            yield fleet, cable
            cable.mend()
            server.close()


@pytest.mark.parametrize("is_mended", [True, False], ids=["mended", "for-ever"])
async def test_each_job_is_told_lost_and_ends_on_a_node_that_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch, is_mended: bool
) -> None:
    """Nothing of it is there twice: not when the network is back, nor when the node is alone for too long."""
    async with with_cable(monkeypatch) as (fleet, cable):
        starting = (Computer.start(on=fleet.place, limits=SMALL)._open() for _ in range(AT_WORK))
        computers = await asyncio.gather(*starting)
        processes = [await one.spawn("echo began; sleep 1000") for one in computers]
        for process in processes:
            assert await anext(aiter(process.stdout)) == b"began\n"
        waiting = asyncio.gather(*(process.wait() for process in processes), return_exceptions=True)
        monkeypatch.setattr(host_module, "KEEP_SECONDS", 3600.0 if is_mended else 0.0)
        monkeypatch.setattr(host_module, "SILENCE_SECONDS", 3600.0 if is_mended else 0.5)
        monkeypatch.setattr(node_link, "LOST_SECONDS", 0.5)
        assert (await computers[0].run("echo at work")).stdout == b"at work\n"
        cable.cut()
        assert all(isinstance(one, FreeholdError) for one in await waiting)
        assert [await remote(one).wait() for one in computers] == [-9] * AT_WORK
        assert {remote(one).lost_because for one in computers} == {"The node shed is lost"}
        monkeypatch.setattr(node_link, "LOST_SECONDS", 60.0)  # twenty computers end in this process
        if is_mended:
            assert len(fleet.host._computers) == AT_WORK
            later = asyncio.ensure_future(Computer.start(on=fleet.place, limits=SMALL)._open())
            cable.mend()
            async with await later as computer:
                assert (await computer.run("echo here")).stdout == b"here\n"
                await until(lambda: len(fleet.host._computers) == 1)
        await until(lambda: not fleet.host._computers)
        await asyncio.gather(*(one.close() for one in computers))
