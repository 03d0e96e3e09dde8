import pytest

from freehold.computer import Computer, ComputerPool
from freehold.errors import FreeholdError


async def test_each_computer_is_used_once() -> None:
    async with Computer.pool(2) as pool:
        await pool.wait_ready()
        hosts = set()
        for _ in range(4):
            async with pool.checkout() as computer:
                assert await computer.files.list() == []
                await computer.files.write("mine", b"")
                hosts.add(computer.transport.address)
        assert len(hosts) == 4


async def test_a_dead_computer_is_not_handed_out() -> None:
    async with Computer.pool(1) as pool:
        await pool.wait_ready()
        warm = pool._ready.get_nowait()
        assert warm.computer.machine is not None
        await warm.computer.machine.stop(0)
        pool._ready.put_nowait(warm)
        async with pool.checkout() as computer:
            assert computer is not warm.computer
            assert (await computer.run("true")).ok


async def test_waiting_callers_get_the_error_of_a_failed_start() -> None:
    async def refuse() -> Computer:
        raise FreeholdError("computer.no-isolation", "no walls here")

    async with ComputerPool(refuse, 2) as pool:
        with pytest.raises(FreeholdError, match="no walls here"):
            await pool.wait_ready()
        with pytest.raises(FreeholdError, match="no walls here"):
            async with pool.checkout():
                pass
    with pytest.raises(FreeholdError):
        Computer.pool(0)


async def test_stats_show_use_and_limits(computer: Computer) -> None:
    async with await computer.spawn("sleep 1000 & sleep 1000 & echo up; wait") as process:
        await process.stdout.read()
        stats = await computer.stats()
    assert stats.processes is not None
    assert 3 <= stats.processes <= 6
    assert stats.memory is not None
    assert 0 < stats.memory < stats.limits.memory
    assert stats.cpu_seconds is not None
    assert 0 <= stats.cpu_seconds < 60
    assert stats.share("processes") == stats.processes / computer.limits.processes
    async with Computer.connect(computer.transport) as other:
        seen = await other.stats()
        assert seen.memory is not None
        assert seen.memory > 0
        assert seen.disk is None
