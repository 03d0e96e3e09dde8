"""Ending all sessions ends every process that agents started, however it hides, and none of the owner's."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.condition import until

from freehold.computer import Computer
from freehold.computer.bubblewrap import backend
from freehold.computer.contract.conventions import GUEST_PYTHON, OWNER_COMMANDS
from freehold.computer.contract.guest_archive import pack_guest, read_sources
from freehold.computer.walls.landlock import can_separate_sessions
from freehold.guest.landlock import MAX_DOMAINS

pytestmark = pytest.mark.asyncio(loop_scope="module")

VERSIONS = "_FIRST_WITH_REFER, _FIRST_WITH_SCOPES = 2, 6"
WITHOUT_LANDLOCK = "a kernel without Landlock"
KERNELS = {
    "this kernel": VERSIONS,
    "Linux 5.19 to 6.11: domains without scopes": VERSIONS.replace("2, 6", "2, 99"),
    WITHOUT_LANDLOCK: VERSIONS.replace("2, 6", "99, 99"),
}

DAEMON = """
import os, sys
def hide():
    # A daemon: two forks, a Unix session of its own, no environment, no descriptors, another name.
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    for descriptor in range(3):
        os.close(descriptor)
    os.execve("/bin/sleep", ["agents-daemon", "600"], {})
"""
SEAL = """
import ctypes
class Program(ctypes.Structure):
    _fields_ = [("size", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None)
libc.prctl(22, 2, ctypes.byref(Program(1, b"\\x06\\0\\0\\0\\0\\0\\xff\\x7f")), 0, 0)
domain = libc.syscall(444, (1 << 13).to_bytes(8, "little"), ctypes.c_long(8), 0)
if domain >= 0:
    libc.syscall(446, domain, 0)
"""
DETACH = """
import ctypes, os, signal, time
libc = ctypes.CDLL(None)
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for descriptor in range(3):
    os.close(descriptor)
libc.prctl(15, b"agents-daemon", 0, 0, 0)
"""
HIDDEN = {
    "a daemon": DAEMON + "hide()",
    "a daemon of a daemon": DAEMON + "if os.fork() == 0:\n    os.setsid()\n    hide()\n    os._exit(0)\nos.wait()",
    "stopped": DETACH + "os.kill(os.getpid(), signal.SIGSTOP)",
    "not to be inspected": DETACH + "libc.prctl(4, 0, 0, 0, 0)\ntime.sleep(600)",
    "traced by another": DETACH
    + """
if os.fork() == 0:
    libc.ptrace(0, 0, 0, 0)
    os.execve("/bin/sleep", ["agents-daemon", "600"], {})
time.sleep(600)
""",
    "sealed once more by itself": DAEMON + SEAL + "hide()",
}
HOPPER = """
import os
os.setsid()
os.environ.clear()
open("/proc/self/comm", "w").write("agents-daemon")
# Never the same process for long: whoever looks for it and kills it later always comes too late.
while True:
    try:
        if os.fork():
            os._exit(0)
    except OSError:
        pass
"""


@pytest.fixture(scope="module", params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> str:
    if request.param != WITHOUT_LANDLOCK and not can_separate_sessions():
        pytest.skip("this kernel has no Landlock: freehold doctor says so")
    return str(request.param)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer(kernel: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Computer]:
    sources = read_sources()
    assert VERSIONS in sources["freehold.guest.kernel"]
    sources["freehold.guest.kernel"] = sources["freehold.guest.kernel"].replace(VERSIONS, KERNELS[kernel])
    archive = tmp_path_factory.mktemp("guest") / "guest.pyz"
    archive.write_bytes(pack_guest(sources))
    archive.chmod(0o644)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "guest_archive", lambda: archive)
        started = await Computer.start()
    async with started:
        yield started


async def hidden_of(computer: Computer) -> list[int]:
    return [
        one.pid
        for one in await computer.processes()
        if one.state != "Z" and (one.name == "agents-daemon" or one.command[:1] == ["agents-daemon"])
    ]


async def start_hidden(computer: Computer, program: str, apart: str) -> list[int]:
    result = await computer.run([GUEST_PYTHON, "-I", "-c", program], apart=apart, timeout=30)
    assert result.ok, result
    return await until(lambda: hidden_of(computer))


@pytest.mark.parametrize("way", HIDDEN)
async def test_a_process_that_hides_is_ended(computer: Computer, way: str) -> None:
    pids = await start_hidden(computer, HIDDEN[way], "session")
    done = await computer.end_sessions()
    assert done.ended >= len(pids)
    assert done.left == ()
    assert await hidden_of(computer) == []


async def test_a_process_that_forks_all_the_time_is_ended(computer: Computer) -> None:
    """A scan of /proc finds it only by luck."""
    for number in range(3):
        async with await computer.spawn([GUEST_PYTHON, "-I", "-c", HOPPER], apart=f"session {number}"):
            pass  # the first of them has ended; the others are not found by the end of the command
    await computer.end_sessions()
    assert [one for one in await computer.processes() if one.name == "agents-daemon"] == []


async def test_processes_of_a_session_that_nobody_remembers_are_ended(computer: Computer) -> None:
    """Only the domains of so many sessions are kept."""
    await start_hidden(computer, HIDDEN["a daemon"], "the first")
    for number in range(MAX_DOMAINS + 1):
        assert (await computer.run(["/bin/true"], apart=f"later {number}")).ok
    await computer.end_sessions()
    assert await hidden_of(computer) == []


async def test_what_a_command_of_the_owner_left_behind_in_a_session_is_ended(computer: Computer) -> None:
    """`!make`, with a Makefile that the agent wrote."""
    await start_hidden(computer, HIDDEN["a daemon"], OWNER_COMMANDS)
    await computer.end_sessions()
    assert await hidden_of(computer) == []


async def test_a_command_of_the_owner_in_a_session_may_end_what_an_agent_started(computer: Computer) -> None:
    (pid,) = await start_hidden(computer, HIDDEN["a daemon"], "session")
    assert (await computer.run(["/bin/kill", "-9", str(pid)], apart=OWNER_COMMANDS)).ok
    await until(lambda: _is_empty(computer))


async def _is_empty(computer: Computer) -> bool:
    return await hidden_of(computer) == []


async def test_everything_of_the_owner_keeps_running(computer: Computer) -> None:
    """A terminal with its jobs, a daemon of a terminal, a service, and a stopped program."""
    pids = await start_hidden(computer, HIDDEN["a daemon"], "session")
    await until(lambda: _is_all(computer, pids))  # the process between has ended as well
    terminal = await computer.terminal(["/bin/bash", "--norc", "-i"])
    jobs = (["sleep", "601"], ["sleep", "602"], ["cat"])
    try:
        async with (
            await computer.spawn(["/bin/cat"]) as service,
            await computer.spawn(["/bin/sh", "-c", "kill -STOP $$; echo went on"]) as stopped,
        ):
            await terminal.write(b"setsid sleep 601 & sleep 602 & cat; echo the job ended\n")
            await until(lambda: _runs(computer, *jobs))
            await until(lambda: _has_state(computer, stopped.pid, "T"))
            done = await computer.end_sessions()
            assert await hidden_of(computer) == []
            assert (done.ended, done.left, done.kept) == (1, (), 6)
            assert [one.command for one in done.detached] == ["sleep 601"]
            await service.write(b"here\n")
            assert await service.stdout.read() == b"here\n"
            assert await _has_state(computer, stopped.pid, "T")
            await terminal.write(b"typed\n")
            await terminal.read_until(b"typed\r\ntyped")  # the echo, and what cat made of it
            assert await _runs(computer, *jobs)
    finally:
        await computer.run(["/usr/bin/pkill", "-9", "sleep"])
        await terminal.close()


async def test_a_program_of_the_owner_that_seals_itself_keeps_running(computer: Computer, kernel: str) -> None:
    """As browsers do. Without Landlock it cannot be told from an agent's, and ends with them."""
    sealed = SEAL + "import time; print('up', flush=True); time.sleep(600)"
    async with await computer.spawn([GUEST_PYTHON, "-I", "-c", sealed]) as browser:
        assert await browser.stdout.read() == b"up\n"
        done = await computer.end_sessions()
        assert done.ended == (1 if kernel == WITHOUT_LANDLOCK else 0)


async def _is_all(computer: Computer, pids: list[int]) -> bool:
    return [one.pid for one in await computer.processes()] == pids


async def _runs(computer: Computer, *commands: list[str]) -> bool:
    running = [one.command for one in await computer.processes()]
    return all(command in running for command in commands)


async def _has_state(computer: Computer, pid: int, state: str) -> bool:
    return any(one.pid == pid and one.state == state for one in await computer.processes())


async def test_a_session_can_start_again_afterwards(computer: Computer) -> None:
    await computer.end_sessions()
    assert (await computer.run("echo here", apart="session")).stdout == b"here\n"
