"""The guest survives everything that programs inside and the host can send it."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest
from tests.computer.machines import host_pid
from tests.support.condition import DEADLINE, until

from freehold.computer import Computer, Limits, Process
from freehold.computer.contract.conventions import GUEST_PYTHON
from freehold.computer.contract.guest_archive import AT_START, guest_archive
from freehold.computer.contract.transport import listen_at
from freehold.computer.library import frames
from freehold.errors import FreeholdError


async def spawn_without_end(computer: Computer, processes: list[Process]) -> None:
    while True:
        processes.append(await computer.spawn(["cat"]))


async def fine(computer: Computer) -> None:
    assert (await computer.run("echo fine")).stdout == b"fine\n"


async def test_no_signal_from_inside_ends_it(computer: Computer) -> None:
    """Nor stops it, although every process has its uid and may signal it."""
    result = await computer.run(
        "for n in $(seq 1 64); do kill -$n 1 2>/dev/null; done; kill -KILL 1; kill -STOP 1; echo done"
    )
    assert result.stdout == b"done\n"
    await fine(computer)
    assert (await computer.run("ps -o stat= -p 1")).stdout[:1] in (b"S", b"R")


async def test_kill_minus_one_does_not_end_it(computer: Computer) -> None:
    await computer.run("kill -9 -1")
    await fine(computer)


async def test_sigterm_from_outside_ends_everything_in_order() -> None:
    async with Computer.start() as computer:
        assert computer.machine is not None
        process = await computer.spawn("trap 'echo asked > asked; exit' TERM; echo up; while :; do sleep 0.01; done")
        await process.stdout.read()
        workspace = Path(computer.transport.address).parent / "workspace"
        await computer.machine.stop(grace=10_000)  # it ends by itself, long before the end of the grace
        assert (workspace / "asked").read_text() == "asked\n"


async def test_no_process_inside_can_inspect_it(computer: Computer) -> None:
    for path in ("environ", "mem", "maps", "fd", "cwd", "root", "exe", "stack"):
        result = await computer.run(f"ls /proc/1/{path}/ || cat /proc/1/{path}; readlink /proc/1/{path}")
        assert result.stdout == b"", path
        assert (
            b"denied" in result.stderr
            or b"No such" in result.stderr
            or b"not permitted" in result.stderr
            or b"Invalid" in result.stderr
        ), path


async def test_children_inherit_no_descriptor(computer: Computer) -> None:
    terminal = await computer.terminal("ls /proc/self/fd")
    shown = await terminal.output.read_all()
    assert sorted(shown.split()) == [b"0", b"1", b"2", b"3"], "3 is the folder that ls reads"
    async with await computer.spawn("cat") as _, await computer.listen(0, lambda tunnel: asyncio.sleep(0)):
        result = await computer.run(["ls", "/proc/self/fd"], stdin=b"")
        assert sorted(result.stdout.split()) == [b"0", b"1", b"2", b"3"]


async def test_children_have_ordinary_signals(computer: Computer) -> None:
    for shown in (await computer.run("cat /proc/self/status"), await computer.run(["cat", "/proc/self/status"])):
        masks = dict(line.split(":\t") for line in shown.text.splitlines() if line.startswith(("SigBlk", "SigIgn")))
        # 32 and 33 belong to the C library.
        assert {int(mask, 16) & ~(0b11 << 31) for mask in masks.values()} == {0}
    terminal = await computer.terminal("grep -E 'Sig(Blk|Ign)' /proc/self/status")
    assert b"1" not in (await terminal.output.read_all()).replace(b"SigIgn", b"").replace(b"SigBlk", b"")


@pytest.mark.parametrize("seed", range(8))
async def test_garbage_on_a_link_ends_only_that_link(computer: Computer, seed: int) -> None:
    """Random bytes, and frames that are almost valid: broken requests, wrong channels, credits, lengths."""
    chance = random.Random(seed)
    payloads = [b"", b"{}", b"[]", b"\xff", b'{"op":1}', b'{"op":"spawn"}', b'{"op":"spawn","argv":[1]}', b'{"op":"files","do":[{"do":"read"}]}',
                b'{"op":"files","do":7}', b'{"op":"files","do":[{"do":"write","path":"x","size":-5}]}', b'{"op":"terminal","argv":["cat"],"rows":-1}',
                b'{"op":"search","pattern":"(","regex":true,"path":".","most":1}', b'{"op":"listen","port":"x"}', b'{"op":"spawn","argv":["true"],"timeout":"x"}',
                b'{"op":"spawn","argv":["true"],"env":[1]}', b'{"window":-1}', b'{"op":"spawn","argv":["true"],"limits":{"cpu_time":-7}}', b'{"op":"terminal.attach","id":{}}',
                frames.CREDIT.pack(0, 2**32 - 1), frames.CREDIT.pack(1, 5), b"\x07" * 5, os.urandom(50)]  # fmt: skip
    for _ in range(20):
        reader, writer = await asyncio.open_unix_connection(computer.transport.address)
        writer.write(frames.PREAMBLE)
        for _ in range(30):
            if chance.random() < 0.03:
                writer.write(chance.randbytes(chance.randrange(200)))
            else:
                writer.write(
                    frames.encode_frame(
                        chance.randrange(11), chance.choice([0, 1, 3, 5, 2, 2**32 - 1]), chance.choice(payloads)
                    )
                )
        writer.write_eof()
        try:
            while await reader.read(65536):
                pass
        except ConnectionError:
            pass
        writer.close()
    await fine(computer)


async def test_a_slow_client_blocks_nothing_else(computer: Computer) -> None:
    writers = []
    for _ in range(30):
        _, writer = await asyncio.open_unix_connection(computer.transport.address)
        writer.write(frames.PREAMBLE[:7])
        writers.append(writer)
    await fine(computer)
    for writer in writers:
        writer.close()


async def test_out_of_descriptors_is_an_error_to_the_caller() -> None:
    async with Computer.start(limits=Limits(open_files=64)) as computer:
        processes: list[Process] = []
        with pytest.raises(FreeholdError) as caught:
            await spawn_without_end(computer, processes)
        assert caught.value.code in ("computer.cannot-start", "computer.refused")
        assert (await computer.files.stat_many(["."]))[0] is not None
        for process in processes:
            await process.close()
        await fine(computer)


async def test_out_of_processes_is_an_error_to_the_caller() -> None:
    async with Computer.start(limits=Limits(processes=20)) as computer:
        processes: list[Process] = []
        with pytest.raises(FreeholdError) as caught:
            await spawn_without_end(computer, processes)
        assert caught.value.code == "computer.cannot-start"
        assert "computer.limits.processes" in caught.value.hint
        with pytest.raises(FreeholdError):
            await computer.terminal(["cat"])
        with pytest.raises(FreeholdError):
            await computer.files.search("x")
        for process in processes:
            await process.close()

        async def again() -> bool:
            try:
                return (await computer.run("echo fine")).ok
            except FreeholdError:
                return False

        await until(again)


async def test_a_fork_bomb_ends_at_the_time_limit() -> None:
    async with Computer.start(limits=Limits(processes=200)) as computer:
        result = await computer.run("bomb() { bomb | bomb & }; bomb; sleep 100", timeout=1)
        assert result.limit == "wall_time" or not result.ok

        async def came_back() -> bool:
            try:
                await computer.run("kill -9 -1")
                await fine(computer)
            except (FreeholdError, AssertionError):
                return False
            return True

        await until(came_back)


async def test_it_loads_no_large_library(computer: Computer) -> None:
    """It does not load what would make it slow or large."""
    assert computer.machine is not None
    maps = Path(f"/proc/{host_pid(computer)}/maps").read_text()
    assert "_asyncio" not in maps
    assert "libssl" not in maps


def test_the_guest_imports_nothing_slow() -> None:
    import subprocess
    import sys

    python = GUEST_PYTHON if Path(GUEST_PYTHON).exists() else sys.executable
    run = f"import zipimport;exec(zipimport.zipimporter({str(guest_archive())!r}).get_code('__main__'))"
    command = [python, "-I", "-S", "-E", "-X", "importtime", "-c", run]  # ends there, without a listener
    told = subprocess.run(command, capture_output=True, check=False, text=True).stderr
    loaded = {line.rpartition("|")[2].strip() for line in told.splitlines() if line.startswith("import time")}
    ours = {name for name in loaded if name.startswith("freehold")}
    assert ours == set(AT_START) - {"freehold.guest.session_end"}  # the rest is read when it is needed
    assert not loaded & {
        "os",
        "__future__",
        "asyncio",
        "typing",
        "re",
        "json",
        "enum",
        "socket",
        "subprocess",
        "threading",
        "pathlib",
        "ctypes",
        "logging",
        "selectors",
    }


def test_signals_are_numbers() -> None:
    from freehold.guest.kernel import signals

    assert int(signals.SIGKILL) == signal.SIGKILL


async def test_it_ends_when_its_host_is_gone(tmp_path: Path) -> None:
    """A host that is killed before the kernel has tied their lives together leaves no guest behind."""
    reader, writer = os.pipe()
    with listen_at(tmp_path / "link") as listener:
        words = ["--listen", str(listener.fileno()), "--ends-with", str(writer)]
        guest = await asyncio.create_subprocess_exec(
            *["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--as-pid-1"],
            *["--die-with-parent", GUEST_PYTHON, str(guest_archive()), *words],
            pass_fds=[listener.fileno(), writer],
        )
        os.close(writer)
        try:
            async with asyncio.timeout(DEADLINE):
                _, connection = await asyncio.open_unix_connection(str(tmp_path / "link"))
                os.close(reader)
                assert await guest.wait() == 0
        finally:
            if guest.returncode is None:
                guest.kill()
        connection.close()
