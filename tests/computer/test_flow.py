"""A process that floods its output neither starves others nor fills memory on either side."""

import asyncio
from dataclasses import replace
from pathlib import Path

from tests.computer.machines import host_pid
from tests.support.condition import until

from freehold.computer import Computer


def memory(pid: int | str = "self") -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


async def test_floods_do_not_starve_a_small_command(computer: Computer) -> None:
    """Ten processes flood their output while a hundred small commands all finish."""
    counts = [0] * 10
    stop = asyncio.Event()

    async def drink(number: int) -> None:
        async with await computer.spawn("yes") as process:
            while not stop.is_set():
                counts[number] += len(await process.stdout.read())

    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(drink(number))
        await until(lambda: all(counts))  # they do not begin at the same time
        before = list(counts)
        for number in range(100):
            assert (await computer.run(f"echo {number}")).text == f"{number}\n"
        shares = [now - then for now, then in zip(counts, before, strict=True)]
        stop.set()
    assert min(shares) > 0
    assert max(shares) < 20 * min(shares), f"shares of the link differ too much: {shares}"


async def test_memory_stays_bounded_on_both_sides(computer: Computer) -> None:
    """Half a gigabyte through one link, and twenty unread floods, use a few windows of memory and no more."""
    assert computer.machine is not None
    before_here, before_there = memory(), memory(host_pid(computer))
    unread = [await computer.spawn("yes") for _ in range(20)]
    async with await computer.spawn("yes | head -c 500000000") as process:
        size = 0
        async for part in process.stdout:
            size += len(part)
        assert size == 500_000_000
    assert memory() - before_here < 20 * 512 * 1024 + 32 * 1024 * 1024
    assert memory(host_pid(computer)) - before_there < 8 * 1024 * 1024
    for flood in unread:
        await flood.close()


async def test_unread_input_stops_at_the_window(computer: Computer) -> None:
    assert computer.machine is not None
    before = memory(host_pid(computer))
    async with await computer.spawn("sleep 1000") as process:
        feeding = asyncio.ensure_future(process.write(b"x" * 50_000_000))
        for _ in range(5):
            assert (await computer.run("echo fine")).ok
        assert not feeding.done()
        assert memory(host_pid(computer)) - before < 8 * 1024 * 1024
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)


async def test_a_billion_lines_end_at_the_time_limit(computer: Computer) -> None:
    limits = replace(computer.limits, output=100_000)  # so little that it is reached on any machine
    result = await computer.run("yes", timeout=2, limits=limits)
    assert result.limit == "wall_time"
    assert len(result.stdout) == limits.output
    assert result.truncated > 0


async def test_reading_a_large_file_does_not_block_commands(computer: Computer) -> None:
    await computer.run("head -c 200000000 /dev/zero > large")
    stream = computer.files.stream("large")
    assert await anext(stream)
    for _ in range(5):
        assert (await computer.run("echo fine")).ok
    await stream.aclose()  # type: ignore[attr-defined]
