"""A connection of a server of a test does not outlive the loop of that test."""

import asyncio
import gc
import socket
import warnings
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.support.condition import until


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_connection_is_closed_with_its_task_whether_or_not_it_has_begun(has_begun: bool) -> None:
    main: asyncio.Task[None] | None = None
    accepted: list[asyncio.StreamWriter] = []
    begun: list[bool] = []

    async def serve() -> None:
        begun.append(True)
        await asyncio.Event().wait()

    def cancel_servers() -> None:
        for task in asyncio.all_tasks():
            if task is not main:
                task.cancel()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Coroutine[Any, Any, None]:
        accepted.append(writer)
        if not has_begun:  # comes before the first step of the task
            asyncio.get_running_loop().call_soon(cancel_servers)
        return serve()

    async def connect() -> None:
        nonlocal main
        main = asyncio.current_task()
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        try:
            client.connect(server.sockets[0].getsockname())
            await until(lambda: begun if has_begun else accepted)
        finally:
            server.close()

    with socket.socket() as client, warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with asyncio.Runner() as runner:
            runner.run(connect())
        assert bool(begun) == has_begun
        assert accepted.pop().transport.is_closing()
        assert client.recv(1) == b""
        gc.collect()
