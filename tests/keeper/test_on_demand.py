"""A program that its first connection starts: nothing runs before, and no connection is lost."""

import asyncio
import socket

from tests.keeper.conftest import SupervisorHarness
from tests.support.ports import free_ports

from freehold.keeper.on_demand_program import OnDemandProgram
from freehold.keeper.supervised_program import SupervisedProgram

ECHO = """
import os, socket, sys
number = int(sys.argv[sys.argv.index("--listen") + 1].split(",")[0])
listener = socket.socket(fileno=number)
listener.setblocking(True)
while True:
    client, _ = listener.accept()
    client.sendall(str(os.getpid()).encode())
    client.close()
"""


def make_program(harness: SupervisorHarness, port: int) -> OnDemandProgram:
    return OnDemandProgram(harness.program("echo", ECHO, required=False), "127.0.0.1", port)


async def read_pid(port: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return int(await reader.read())
    finally:
        writer.close()
        await writer.wait_closed()


async def wait_idle(harness: SupervisorHarness, supervised: SupervisedProgram) -> None:
    await harness.until(lambda: supervised.state == "idle")


async def test_it_is_started_by_its_first_connection_which_is_answered(harness: SupervisorHarness) -> None:
    (port,) = free_ports(1)
    async with harness.running() as supervisor:
        supervised = supervisor.start(make_program(harness, port))
        await wait_idle(harness, supervised)
        assert supervised.run is None
        answers = await asyncio.gather(*(read_pid(port) for _ in range(20)))
        assert len(set(answers)) == 1
        await harness.until(lambda: supervised.state == "ready")
        assert supervised.status().pid == answers[0]


async def test_after_its_end_it_waits_for_the_next_connection(harness: SupervisorHarness) -> None:
    (port,) = free_ports(1)
    async with harness.running() as supervisor:
        supervised = supervisor.start(make_program(harness, port))
        await wait_idle(harness, supervised)
        first = await read_pid(port)
        await harness.until(lambda: supervised.state == "ready")
        await supervised.restart()
        await wait_idle(harness, supervised)
        assert supervised.status().pid is None
        assert await read_pid(port) != first


async def test_it_can_be_restarted_and_stopped_while_it_waits(harness: SupervisorHarness) -> None:
    (port,) = free_ports(1)
    async with harness.running() as supervisor:
        supervised = supervisor.start(make_program(harness, port))
        await wait_idle(harness, supervised)
        async with asyncio.timeout(60):
            await supervised.restart()
        await wait_idle(harness, supervised)
        await supervisor.stop(_nothing)
        assert supervised.state == "stopped"
        with socket.socket() as client:
            assert client.connect_ex(("127.0.0.1", port)) != 0, "nobody listens any more"


async def test_a_port_that_is_taken_is_named_and_tried_again(harness: SupervisorHarness) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with harness.running() as supervisor:
            supervised = supervisor.start(make_program(harness, port))
            await harness.until(lambda: "echo.port" in (supervised.last_error or ""))
            taken.close()
            await harness.until(lambda: supervised.state == "idle" and supervised.starts > 1)
            assert await read_pid(port)


async def _nothing() -> None:
    return
