"""A computer sleeps while nobody uses it, and wakes without losing anything. Real machines, real processes."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.computer.test_backend_conformance import make_spec
from tests.support.condition import until, wait_until
from tests.support.processes import read_command

from freehold.computer import Computer, Limits, Machine, launch
from freehold.computer.contract.report import SleepReport
from freehold.computer.contract.transport import SocketTransport, listen_at
from freehold.computer.library import use_server
from freehold.computer.library.connection import ComputerConnection
from freehold.computer.library.tunnel import Tunnel
from freehold.computer.library.use import use_socket
from freehold.computer.library.use_server import Sleep, UseServer
from freehold.computer.walls import freezer
from freehold.errors import FreeholdError

SOON = 0.02
DAY = 86400.0


class SleepingMachine:
    """A machine whose use socket is served. `slept` and `woken` are what its server reported."""

    def __init__(self, machine: Machine, path: Path, sleep_after: float) -> None:
        self.machine = machine
        self.path = path
        self.slept: list[Sleep] = []
        self.woken: list[float] = []
        self.server = UseServer(machine, sleep_after, self.slept.append, lambda _, seconds: self.woken.append(seconds))

    async def asleep(self) -> None:
        """Returns when it sleeps and its clients know."""
        await until(lambda: self.machine.is_asleep and self.server.current is not None)


@pytest.fixture
def sleep_after() -> float:
    return SOON


@pytest.fixture
async def sleeper(tmp_path: Path, sleep_after: float) -> AsyncIterator[SleepingMachine]:
    path = tmp_path / "link"
    with contextlib.closing(listen_at(use_socket(path))) as listener:
        machine = await launch(replace(make_spec(tmp_path, "one"), limits=Limits()), path)
        try:
            found = SleepingMachine(machine, path, sleep_after)
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(found.server.run(listener))
                yield found
                serving.cancel()
        finally:
            await machine.stop(0)


class SilentClient:
    """Speaks to the use socket by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def line(self) -> bytes:
        line = await self.reader.readline()
        if not line:
            raise EOFError("the use socket was closed")
        return line.strip()

    async def asked(self, times: int = 1) -> None:
        """Returns after so many questions; each is answered with a very long time."""
        while times:
            if await self.line() == b"ask":
                times -= 1
                self.writer.write(b"unused 1000000\n")


@contextlib.asynccontextmanager
async def silent_client(sleeper: SleepingMachine) -> AsyncIterator[SilentClient]:
    reader, writer = await asyncio.open_unix_connection(use_socket(sleeper.path))
    try:
        yield SilentClient(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_an_unused_computer_sleeps_and_its_first_use_wakes_it(sleeper: SleepingMachine) -> None:
    async with Computer.connect(sleeper.path) as computer:
        await sleeper.asleep()
        assert (await computer.run("echo awake")).stdout == b"awake\n"
        assert sleeper.slept[0].report.how == "frozen"
        await until(lambda: bool(sleeper.woken))


async def test_a_hundred_requests_at_once_wake_it_and_none_is_lost(sleeper: SleepingMachine) -> None:
    async with Computer.connect(sleeper.path) as one, Computer.connect(sleeper.path) as other:
        await sleeper.asleep()
        asked = [(one if number % 2 else other).run(["echo", str(number)]) for number in range(100)]
        assert [int(answer.stdout) for answer in await asyncio.gather(*asked)] == list(range(100))


async def test_a_new_client_wakes_it(sleeper: SleepingMachine) -> None:
    await sleeper.asleep()
    async with Computer.connect(sleeper.path) as computer:
        assert not computer.is_asleep
        assert (await computer.run("echo awake")).stdout == b"awake\n"


async def test_a_computer_that_is_held_stays_awake(sleeper: SleepingMachine) -> None:
    """Nothing is sent meanwhile: an agent thinks, or waits for its owner."""
    async with Computer.connect(sleeper.path) as computer, silent_client(sleeper) as witness:
        with computer.hold_awake():
            await computer.run("true")
            before = len(sleeper.slept)
            await witness.asked(10)
            assert len(sleeper.slept) == before
        answering = asyncio.ensure_future(witness.asked(1_000_000))
        await sleeper.asleep()
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)


async def test_a_command_that_runs_keeps_it_awake(sleeper: SleepingMachine) -> None:
    async with Computer.connect(sleeper.path) as computer, silent_client(sleeper) as witness:
        running = asyncio.ensure_future(computer.run("while [ ! -e go ]; do sleep 0.01; done"))
        await computer.run("true")
        before = len(sleeper.slept)
        await witness.asked(10)
        assert len(sleeper.slept) == before
        await computer.files.write("go", b"")
        await asyncio.gather(running, witness.asked())


@pytest.mark.parametrize("sleep_after", [DAY])
async def test_output_of_a_terminal_is_a_use_by_whoever_watches_it(sleeper: SleepingMachine) -> None:
    """Also without a keystroke. Another client makes the terminal write."""
    async with Computer.connect(sleeper.path) as computer, Computer.connect(sleeper.path) as other:
        use = computer._connection.use
        terminal = await computer.terminal(["/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.01; done; echo tick; cat"])
        use._last_use -= DAY
        assert use.unused >= DAY
        await other.files.write("go", b"")
        await terminal.read_until(b"tick")
        assert use.unused < DAY


async def test_looking_at_it_is_no_use(sleeper: SleepingMachine) -> None:
    async with Computer.connect(sleeper.path) as computer:
        looking = asyncio.ensure_future(_look_until_asleep(computer))
        await sleeper.asleep()
        await looking


async def _look_until_asleep(computer: Computer) -> None:
    while not computer.is_asleep:
        await computer.listening_sockets()
        await computer.processes()
        await computer.stats()


async def test_bytes_for_a_program_inside_do_not_wake_it(sleeper: SleepingMachine) -> None:
    """A server outside that sends something every minute must not keep the computer awake."""
    opened: asyncio.Queue[Tunnel] = asyncio.Queue()
    ended = asyncio.Event()

    async def serve(tunnel: Tunnel) -> None:
        await opened.put(tunnel)
        await ended.wait()

    async with Computer.connect(sleeper.path) as computer:
        await computer.listen(4000, serve)
        with computer.hold_awake():
            process = await computer.spawn(["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/4000; cat <&3"])
            tunnel = await opened.get()
        await sleeper.asleep()
        woken = len(sleeper.woken)
        await tunnel.write(b"ping")
        await asyncio.sleep(5 * SOON)
        assert sleeper.machine.is_asleep
        assert len(sleeper.woken) == woken
        with computer.hold_awake():
            assert await process.stdout.read() == b"ping"
        ended.set()


async def test_asleep_for_a_day_it_uses_no_processor_and_its_link_is_not_lost(sleeper: SleepingMachine) -> None:
    now = 0.0
    connection = ComputerConnection(SocketTransport(sleeper.path), clock=lambda: now, interval=0.01)
    await connection.open()
    try:
        link = connection.link
        await sleeper.asleep()
        await until(lambda: link._is_paused)
        used = sleeper.machine.usage().cpu_seconds
        now += DAY
        await asyncio.sleep(0.05)
        assert connection.state == "healthy"
        assert sleeper.machine.usage().cpu_seconds == used
        connection.use.touch()
        await until(lambda: bool(sleeper.woken))
        assert connection.link is link
    finally:
        await connection.close()


async def test_memory_that_is_given_back_is_there_again_after_the_sleep(
    sleeper: SleepingMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel is asked to move everything to swap, also on a host that has none."""
    monkeypatch.setattr(freezer, "_has_swap", lambda: True)
    fill = "import hashlib\nx = bytes(range(256)) * 80000\nprint(hashlib.sha256(x).hexdigest(), flush=True)\ninput()\nprint(hashlib.sha256(x).hexdigest(), flush=True)\n"
    async with Computer.connect(sleeper.path) as computer:
        with computer.hold_awake():
            process = await computer.spawn(["/usr/bin/python3", "-c", fill])
            before = await process.stdout.read()
        await sleeper.asleep()
        assert sleeper.slept[-1].report.memory_before
        with computer.hold_awake():
            await process.write(b"\n")
            assert await process.stdout.read() == before


async def test_a_sleep_that_fails_is_told_and_tried_again(
    sleeper: SleepingMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(use_server, "RETRY_AFTER", SOON)
    sleep = sleeper.machine.sleep
    tried: list[FreeholdError | None] = []

    async def fail_three_times() -> SleepReport:
        if len(tried) < 3:
            tried.append(sleeper.server.trouble)
            raise FreeholdError("computer.cannot-sleep", "The kernel did not freeze every process")
        return await sleep()

    async with silent_client(sleeper) as client:
        answering = asyncio.ensure_future(client.asked(1_000_000))
        monkeypatch.setattr(sleeper.machine, "sleep", fail_three_times)
        await until(lambda: len(tried) == 3)
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
    assert [one is not None and one.code for one in tried[1:]] == ["computer.cannot-sleep"] * 2
    await sleeper.asleep()
    assert sleeper.server.trouble is None
    async with Computer.connect(sleeper.path) as computer:
        assert (await computer.run("echo awake")).stdout == b"awake\n"


async def test_a_client_that_does_not_answer_keeps_it_awake(
    sleeper: SleepingMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(use_server, "ANSWER_TIMEOUT", 0.02)
    async with silent_client(sleeper) as client:
        assert await client.line() == b"awake"
        before = len(sleeper.slept)
        for _ in range(3):
            while await client.line() != b"ask":
                pass
        assert len(sleeper.slept) == before
    await sleeper.asleep()


async def test_a_client_that_is_not_asked_any_more_connects_anew(sleeper: SleepingMachine) -> None:
    """Without its use connection the computer would sleep while it works."""
    async with Computer.connect(sleeper.path) as computer:
        link = computer._connection.link
        transport = computer._connection.use._transport
        assert transport is not None
        transport.abort()
        await until(lambda: link.ended.done())
        await computer.wait_connected()
        assert computer._connection.use.is_connected
        await sleeper.asleep()
        assert (await computer.run("echo awake")).stdout == b"awake\n"


async def test_words_that_are_no_answer_keep_it_awake(sleeper: SleepingMachine) -> None:
    async with silent_client(sleeper) as client:
        assert await client.line() == b"awake"
        before = len(sleeper.slept)
        for words in (b"unused soon\n", b"unused nan\n", b"unused -5\n"):
            while await client.line() != b"ask":
                pass
            client.writer.write(words)
        while await client.line() != b"awake":
            pass
        assert len(sleeper.slept) == before
        client.writer.write(b"x" * 1000)
        assert not await client.reader.read()


async def test_it_sleeps_and_wakes_200_times_with_a_server_and_a_terminal(sleeper: SleepingMachine) -> None:
    serve = "import socket\ns = socket.create_server(('127.0.0.1', 4001))\nn = 0\nwhile True:\n    c, _ = s.accept()\n    n += 1\n    c.sendall(b'%d' % n)\n    c.close()\n"
    async with Computer.connect(sleeper.path) as computer:
        await computer.spawn(["/usr/bin/python3", "-c", serve])

        async def listens() -> bool:
            return any(one.port == 4001 for one in await computer.listening_sockets())

        await until(listens)
        terminal = await computer.terminal(["/bin/sh"])
        for number in range(1, 201):
            await sleeper.asleep()
            with computer.hold_awake():
                if number % 10 == 0:
                    await terminal.write(f"echo [{number}]\n".encode())
                    await terminal.read_until(f"\n[{number}]".encode())
                async with await computer.forward(4001) as tunnel:
                    assert await tunnel.read() == b"%d" % number
        assert len(sleeper.slept) >= 200


STARTER = """
import asyncio, sys
from pathlib import Path
from freehold.computer import launch
from freehold.computer.contract.backend import find_host_pid
from freehold.computer.contract.spec import ComputerSpec

async def main():
    folder = Path(sys.argv[1])
    machine = await launch(ComputerSpec(folder / "one/workspace", folder / "one/home"), folder / "link")
    await machine.sleep()
    print(find_host_pid(machine), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_sleeping_computer_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """What is frozen cannot be killed before it is thawed: nobody else would do that."""
    make_spec(tmp_path, "one")
    with subprocess.Popen([sys.executable, "-c", STARTER, str(tmp_path)], stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        guest = int(starter.stdout.readline())
        assert read_command(guest)
        os.kill(starter.pid, signal.SIGKILL)
    wait_until(lambda: not read_command(guest))
