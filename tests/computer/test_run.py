import asyncio
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.computer.waits import until_quiet, until_there
from tests.support.condition import until

from freehold import Computer as exported
from freehold.computer import Computer, Limits
from freehold.errors import FreeholdError


def test_the_package_exports_computer() -> None:
    assert exported is Computer


async def test_a_command_returns_output_and_exit_code(computer: Computer) -> None:
    result = await computer.run("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code, result.signal) == (b"out\n", b"err\n", 3, None)
    assert result.duration > 0
    assert not result.truncated
    assert result.limit is None
    assert not result.ok


async def test_a_command_ignores_no_signal_although_its_host_does() -> None:
    """As a host does that was started with nohup: a hang-up would otherwise end nothing inside."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        async with Computer.start() as computer:
            ignored = await computer.run("grep SigIgn /proc/self/status")
            numbers = {number + 1 for number in range(64) if int(ignored.stdout.split()[1], 16) >> number & 1}
            # A C library keeps two numbers for itself, and no program can set what those do.
            assert numbers.isdisjoint(signal.valid_signals())
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_a_sequence_is_started_without_a_shell(computer: Computer) -> None:
    result = await computer.run(["printf", "%s|", "$HOME", "a b", "*"])
    assert result.stdout == b"$HOME|a b|*|"


async def test_folder_environment_and_stdin(computer: Computer) -> None:
    await computer.files.mkdir("deep/er", parents=True)
    result = await computer.run(
        "pwd; echo $GIVEN ${LANG-unset}; cat", cwd="deep/er", env={"GIVEN": "yes", "LANG": None}, stdin="fed"
    )
    assert result.stdout == b"/workspace/deep/er\nyes unset\nfed"
    assert (await computer.run("cat")).stdout == b"", "without stdin there is nothing to read"
    assert (await computer.run("cat", stdin=b"x" * 3_000_000)).stdout == b"x" * 3_000_000


async def test_a_signal_is_reported(computer: Computer) -> None:
    result = await computer.run("kill -SEGV $$")
    assert (result.exit_code, result.signal) == (-signal.SIGSEGV, signal.SIGSEGV)


@pytest.mark.parametrize(
    ("command", "options", "code", "words"),
    [
        (["no-such-program"], {}, "computer.no-program", "no-such-program: No such file"),
        (["/etc/passwd"], {}, "computer.no-program", "Permission denied"),
        ("true", {"cwd": "nowhere"}, "computer.bad-folder", "/workspace/nowhere"),
        ("true", {"env": {"A=B": "c"}}, "computer.bad-request", "A=B"),
        (["a\0b"], {}, "computer.bad-request", "NUL"),
        ([], {}, "computer.bad-request", "at least a program"),
        ([b"ls"], {}, "computer.bad-request", "a list of strings, not [b'ls']"),
        (["ls", Path("x")], {}, "computer.bad-request", "a list of strings"),
        (42, {}, "computer.bad-request", "not 42"),
    ],
)
async def test_a_command_that_cannot_start_names_the_reason(
    computer: Computer, command: str | list[str], options: dict[str, str], code: str, words: str
) -> None:
    with pytest.raises(FreeholdError) as caught:
        await computer.run(command, **options)  # type: ignore[arg-type]
    assert caught.value.code == code
    assert words in caught.value.message
    assert (await computer.run(["true"])).ok


async def test_output_beyond_the_limit_is_counted_and_discarded(computer: Computer) -> None:
    limits = replace(computer.limits, output=1000)
    result = await computer.run("yes | head -c 5000000; echo some >&2", limits=limits)
    assert result.stdout == b"y\n" * 500
    assert result.truncated == 5_000_000 - 1000
    assert result.stderr == b"some\n"
    assert result.limit == "output"
    assert result.exit_code == 0


async def test_a_timeout_ends_the_command_with_all_it_started(computer: Computer) -> None:
    result = await computer.run(
        "sleep 1000 & (setsid sleep 1001 &) ; (setsid sh -c 'sleep 1002 & sleep 1003' &); sleep 1004", timeout=0.3
    )
    assert result.limit == "wall_time"
    assert result.signal == signal.SIGKILL
    await until_quiet(computer)


async def test_the_wall_time_limit_holds_without_a_timeout() -> None:
    async with Computer.start(limits=Limits(wall_time=1)) as computer:
        assert (await computer.run("sleep 100")).limit == "wall_time"


async def test_the_cpu_time_limit_ends_a_busy_command() -> None:
    async with Computer.start(limits=Limits(cpu_time=1)) as computer:
        result = await computer.run("while :; do :; done", timeout=60)
        assert result.limit == "cpu_time"


async def test_a_memory_bomb_names_the_limit() -> None:
    async with Computer.start(limits=Limits(memory=128 * 1024 * 1024)) as computer:
        result = await computer.run(["python3", "-c", "b = b'x' * (512 * 1024 * 1024)"], timeout=60)
        assert not result.ok
        assert result.limit == "memory" or b"MemoryError" in result.stderr
        assert (await computer.run("echo alive")).stdout == b"alive\n"


async def test_cancelling_ends_the_command(computer: Computer) -> None:
    task = asyncio.ensure_future(computer.run("echo begun > mark; (setsid sleep 1000 &); sleep 1001"))
    await until_there(computer, "mark")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_quiet(computer)


async def test_background_processes_keep_running_and_are_not_waited_for(computer: Computer) -> None:
    result = await computer.run("sleep 1000 & echo started")
    assert result.stdout == b"started\n"

    async def only_sleep_runs() -> bool:  # a moment ago it was still the shell that has forked
        return [one.name for one in await computer.processes()] == ["sleep"]

    await until(only_sleep_runs)


async def test_a_result_can_be_checked(computer: Computer) -> None:
    assert (await computer.run("true")).check().ok
    with pytest.raises(FreeholdError) as caught:
        (await computer.run("echo why >&2; exit 4")).check()
    assert caught.value.code == "computer.command-failed"
    assert "why" in caught.value.message
    with pytest.raises(FreeholdError, match=r"computer\.limits\.wall_time"):
        (await computer.run("sleep 10", timeout=0.05)).check()


@pytest.mark.parametrize("count", [10, 100])
async def test_many_at_once(computer: Computer, count: int) -> None:
    results = await asyncio.gather(*(computer.run(f"echo {number}; cat", stdin=str(number)) for number in range(count)))
    assert [result.stdout for result in results] == [f"{number}\n{number}".encode() for number in range(count)]
