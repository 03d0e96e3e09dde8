"""Whatever an owner asks for, the link and everything else that runs on it stay: only the request itself may fail."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.support.condition import until

from freehold.computer import Computer
from freehold.computer.library.link import UnwantedChannel
from freehold.computer.library.process import Process
from freehold.errors import FreeholdError
from freehold.guest.link import MAX_CHANNELS

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATHS = ("x" * 2000, "x/" * 60_000, "/" + "\udcff" * 30_000, "a\0b", "\ud800", "\U0001f600" * 5000, "", "/" * 4000)
NUMBERS = (2**31, 2**63, 2**64, 2**70, -1, -(2**70))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer() -> AsyncIterator[Computer]:
    async with Computer.start() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def turn(computer: Computer) -> AsyncIterator[Process]:
    """Stands for a running turn: it answers on the same link at the end, or the test fails."""
    async with await computer.spawn(["/bin/cat"], apart="session") as process:
        yield process
        await process.write(b"still here\n")
        assert await process.stdout.read_exactly(11) == b"still here\n"


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
async def test_no_path_ends_the_link(computer: Computer, turn: Process, path: str) -> None:
    files = computer.files
    acts = (
        files.stat(path),
        files.read_text(path),
        files.list(path),
        files.write(f"{path}/below", b"x"),
        files.append(path + "/below", b"x"),
        files.move(path, path + "2"),
        files.remove(path + "3"),
        files.glob("*", path),
        files.search("x", path),
        computer.run(["true"], cwd=path),
        computer.run([path or " "]),
        computer.forward(path or "/"),
    )
    for answer in await asyncio.gather(*acts, return_exceptions=True):
        if isinstance(answer, FreeholdError):
            assert not answer.code.startswith("link."), answer
            assert len(answer.message) < 20_000


@pytest.mark.parametrize("number", NUMBERS)
async def test_no_number_ends_the_link(computer: Computer, turn: Process, number: int) -> None:
    await computer.files.write("file", b"x" * 10)
    requests: list[dict[str, Any]] = [
        {"op": "files", "do": [{"do": "read", "path": "file", "offset": number}]},
        {"op": "files", "do": [{"do": "read", "path": "file", "length": number}]},
        {"op": "files", "do": [{"do": "list", "path": ".", "most": number}]},
        {"op": "files", "do": [{"do": "walk", "path": ".", "most": 1, "depth": number}]},
        {"op": "files", "do": [{"do": "mkdir", "path": "made", "mode": number}]},
        {"op": "files", "do": [{"do": "chmod", "path": "file", "mode": number}]},
        {"op": "spawn", "argv": ["true"], "limits": {"cpu_time": number, "file_size": number, "open_files": number}},
        {"op": "spawn", "argv": ["true"], "timeout": number, "linger": number, "capture": number},
        {"op": "terminal", "argv": ["true"], "rows": number, "cols": number, "scrollback": number},
        {"op": "terminal.attach", "id": number, "since": number},
        {"op": "holders", "sockets": [number]},
        {"op": "forward", "port": number},
        {"op": "listen", "port": number},
    ]
    for request in requests:
        channel = computer._connection.link.open(request, UnwantedChannel())
        channel.send_message({"signal": number})
        channel.send_message({"rows": number, "cols": number})
        channel.close()
    assert (await computer.run(["/bin/sh", "-c", "ulimit -n; ulimit -f"])).text != "0\n0\n"


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 1e300, -1e300])
async def test_no_time_limit_stops_the_clock_of_the_computer(computer: Computer, turn: Process, seconds: float) -> None:
    """A delay that is not a number would disorder all timers; one without end would end the guest."""
    link = computer._connection.link
    request = {"op": "spawn", "argv": ["/bin/sleep", "30"]}
    opened = [link.open({**request, name: seconds}, UnwantedChannel()) for name in ("timeout", "linger")]
    try:
        assert (await computer.run(["/bin/sleep", "60"], timeout=0.1)).limit == "wall_time"
    finally:
        for channel in opened:
            channel.close()


async def test_a_folder_of_long_links_is_listed(computer: Computer, turn: Process) -> None:
    """An agent can make one: 256 links with long targets were once a record that cost the link."""
    target = b"\xff" * 4000
    made = await computer.run(
        [
            "/usr/bin/python3",
            "-c",
            "import os\nfor n in range(300): os.symlink(b'\\xff' * 4000, b'%03d' % n + b'\\xff' * 250)",
        ],
        cwd="/home/agent",
    )
    assert made.ok, made
    listed = await computer.files.list("/home/agent", limit=1000)
    assert len(listed) == 300
    assert {one.target for one in listed} == {os.fsdecode(target)}


async def test_terminals_with_long_commands_are_listed(computer: Computer, turn: Process) -> None:
    long = "x" * 120_000
    opened = [await computer.terminal(["/bin/sh", "-c", "sleep 60", long, long[:100_000]]) for _ in range(3)]
    found = {one.id: one for one in await computer.terminals()}
    for terminal in opened:
        assert found[terminal.id].command[:3] == ("/bin/sh", "-c", "sleep 60")
        await terminal.close()


async def test_complaints_of_the_guest_never_block_it(computer: Computer, turn: Process) -> None:
    """It writes a line for each bug; the host stops reading after 64 KiB, and a pipe holds as much again."""
    link = computer._connection.link
    before = computer.machine.last_words() if computer.machine is not None else ""
    for _ in range(4000):
        link.open({"op": ["no operation has a list as its name"]}, UnwantedChannel())
    assert (await computer.run("echo fine")).stdout == b"fine\n"
    await until(lambda: computer.machine is None or computer.machine.last_words() != before)


async def test_the_request_too_many_is_refused_alone(computer: Computer, turn: Process) -> None:
    """Each waits for contents that never come."""
    link = computer._connection.link
    request = {"op": "files", "do": [{"do": "write", "path": "none/x", "size": 1}]}
    waiting = [link.open(request, UnwantedChannel()) for _ in range(MAX_CHANNELS)]
    try:
        with pytest.raises(FreeholdError) as caught:
            await computer.files.stat(".")
        assert caught.value.code == "computer.busy"
    finally:
        for channel in waiting:
            channel.close()


async def test_a_search_that_is_given_up_after_its_end_kills_nothing(computer: Computer, turn: Process) -> None:
    """Its results wait for a reader who leaves. Its process is gone by then, so there is nothing left to kill."""
    await computer.files.write("haystack", b"needle\n" * 100)
    request = {"op": "search", "pattern": "needle", "path": "haystack", "most": 1000}
    channel = computer._connection.link.open(request, UnwantedChannel(), 1)

    async def has_ended() -> bool:
        return [one.pid for one in await computer.processes()] == [turn.pid]

    await until(has_ended)
    channel.close()
