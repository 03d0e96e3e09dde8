import signal

import pytest
from tests.computer.waits import until_quiet, until_there
from tests.support.condition import until

from freehold.computer import Computer
from freehold.computer.library.frames import WINDOW
from freehold.errors import FreeholdError


async def runs(computer: Computer, name: str) -> bool:
    return name in [one.name for one in await computer.processes()]


async def test_streams_both_ways(computer: Computer) -> None:
    async with await computer.spawn(
        "while read line; do echo got $line; echo err $line >&2; done; echo bye"
    ) as process:
        await process.write(b"one\n")
        assert await process.stdout.read_exactly(8) == b"got one\n"
        assert await process.stderr.read() == b"err one\n"
        await process.write(b"two\n")
        process.close_stdin()
        assert await process.stdout.read_all() == b"got two\nbye\n"
        end = await process.wait()
        assert (end.code, end.signal) == (0, None)
        assert process.exit == end


async def test_lines(computer: Computer) -> None:
    async with await computer.spawn("printf 'a\\nbb\\n\\nlast'") as process:
        assert [line async for line in process.stdout.lines()] == [b"a\n", b"bb\n", b"\n", b"last"]


async def test_stderr_can_be_merged(computer: Computer) -> None:
    async with await computer.spawn("echo a; echo b >&2; echo c", merge_stderr=True) as process:
        assert await process.stdout.read_all() == b"a\nb\nc\n"


async def test_signals_reach_the_whole_group(computer: Computer) -> None:
    async with await computer.spawn(
        "trap 'echo trapped; exit 9' USR1; echo ready; while :; do sleep 0.01; done"
    ) as process:
        assert await process.stdout.read() == b"ready\n"
        process.signal(signal.SIGUSR1)
        assert await process.stdout.read() == b"trapped\n"
        assert (await process.wait()).code == 9


async def test_terminate_sends_sigterm(computer: Computer) -> None:
    process = await computer.spawn(["sleep", "1000"])
    process.terminate()
    assert (await process.wait()).signal == signal.SIGTERM


DAEMON = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.chdir("/")
open("/workspace/daemon", "w").write("up")
time.sleep(1000)
"""


@pytest.mark.parametrize("how", ["kill", "leave", "lose"])
async def test_a_killed_command_leaves_no_orphan(computer: Computer, how: str) -> None:
    """A daemon that forked twice and left its Unix session is found by the marker that it inherited."""
    await computer.files.write("daemon.py", DAEMON)
    async with Computer.connect(computer.transport) as other:
        process = await other.spawn("python3 daemon.py & sleep 1000")
        await until_there(computer, "daemon")
        assert len(await computer.processes()) >= 3
        if how == "kill":
            process.kill()
            assert (await process.wait()).signal == signal.SIGKILL
        elif how == "leave":
            await process.close()
    await until_quiet(computer)


async def test_orphans_are_reaped(computer: Computer) -> None:
    await computer.run("for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.01 &) ; done")
    await until_quiet(computer)


async def test_a_process_whose_output_is_not_read_waits(computer: Computer) -> None:
    """It writes no more than the window and the pipe can hold."""
    async with await computer.spawn("yes; echo never") as process:

        def held() -> int:
            return sum(len(part) for part in process.stdout._parts)

        async def waits() -> bool:
            (running,) = [one for one in await computer.processes() if one.name == "yes"]
            return running.state == "S"

        await until(lambda: held() >= WINDOW)
        await until(waits)
        assert (await computer.run("true")).ok
        assert held() == WINDOW


async def test_the_process_tree_shows_parents_and_children(computer: Computer) -> None:
    async with await computer.spawn("sleep 1000 & echo up; wait") as process:
        await process.stdout.read()
        await until(lambda: runs(computer, "sleep"))  # forked, not yet become it
        (top,) = await computer.process_tree()
        assert top.process.pid == process.pid
        assert top.process.leader
        assert [child.process.name for child in top.children] == ["sleep"]
        assert top.children[0].process.command == ["sleep", "1000"]


async def test_a_process_on_a_lost_link_raises(computer: Computer) -> None:
    other = await Computer.connect(computer.transport)
    process = await other.spawn("cat")
    await other.close()
    with pytest.raises(FreeholdError) as caught:
        await process.wait()
    assert caught.value.code == "link.closed"
    with pytest.raises(FreeholdError):
        await process.stdout.read()


async def test_the_owner_of_a_socket_is_found(computer: Computer) -> None:
    """Also for a process of another group: the guest can inspect all processes."""
    listen = (
        "import socket, time; s = socket.create_server(('127.0.0.1', 4321)); print('ready', flush=True); time.sleep(60)"
    )
    async with await computer.spawn(["/usr/bin/python3", "-c", listen], apart="one") as process:
        assert await process.stdout.read() == b"ready\n"
        table = (await computer.run(["cat", "/proc/net/tcp"])).text.splitlines()
        (number,) = (int(line.split()[9]) for line in table if line.split()[1].endswith(":10E1"))
        assert await computer.socket_holders([number, 1]) == {number: process.pid}
        assert await computer.socket_holders([]) == {}
