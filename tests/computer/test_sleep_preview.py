"""A request to a preview keeps the computer awake until it has its answer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.computer.test_sleep import SOON, SleepingMachine, silent_client
from tests.gateway.preview_harness import TIMEOUT, running_previews

from freehold.computer import Machine
from freehold.computer.contract.transport import listen_at
from freehold.computer.library.use import use_socket
from freehold.home import Home


async def test_a_preview_that_still_sends_keeps_it_awake(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("home")  # the path of a socket is short
    home = Home(root=root, run=root / "run")
    home.run.mkdir(mode=0o700)
    found: list[SleepingMachine] = []
    with contextlib.closing(listen_at(use_socket(home.computer_socket()))) as listener:

        @contextlib.asynccontextmanager
        async def sleeping(machine: Machine) -> AsyncIterator[None]:
            found.append(SleepingMachine(machine, home.computer_socket(), SOON))
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(found[0].server.run(listener))
                yield
                serving.cancel()

        async with running_previews(root, around=sleeping) as previews:
            (sleeper,) = found
            cookie = await previews.open_preview(previews.browser())
            await sleeper.asleep()
            reader, writer = await asyncio.open_connection("127.0.0.1", previews.gateway.port)
            writer.write(f"GET /events HTTP/1.1\r\nHost: {previews.host()}\r\nCookie: {cookie}\r\n\r\n".encode())
            async with asyncio.timeout(TIMEOUT):
                await reader.readuntil(b"data: one")
            async with silent_client(sleeper) as witness:
                before = len(sleeper.slept)
                await witness.asked(10)
                assert len(sleeper.slept) == before
            writer.close()
            await writer.wait_closed()
            await sleeper.asleep()
