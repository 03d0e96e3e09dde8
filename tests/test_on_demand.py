"""What starts at its first use is shared by its users, ends when nobody uses it, and starts anew after that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.support.condition import until

from freehold.errors import FreeholdError
from freehold.on_demand import OnDemand


class Thing:
    def __init__(self, number: int) -> None:
        self.number = number
        self.ended = asyncio.Event()

    async def wait_ended(self) -> None:
        await self.ended.wait()


class Things:
    """Counts what is open."""

    def __init__(self) -> None:
        self.started = 0
        self.open: list[Thing] = []
        self.problem: FreeholdError | None = None
        self.held = asyncio.Event()
        self.held.set()

    @asynccontextmanager
    async def make(self) -> AsyncIterator[Thing]:
        self.started += 1
        await self.held.wait()
        if self.problem is not None:
            raise self.problem
        thing = Thing(self.started)
        self.open.append(thing)
        try:
            yield thing
        finally:
            self.open.remove(thing)


async def test_users_share_one_and_it_ends_when_nobody_has_used_it_for_a_while() -> None:
    things = Things()
    held = OnDemand("thing", things.make, idle=0.05)
    assert not held.is_open
    assert things.started == 0
    async with held.use() as one, held.use() as other:
        assert one is other
        assert held.users == 2
        await asyncio.sleep(0.2)  # longer than it may be idle: it is in use
        assert held.is_open
    await until(lambda: not things.open)
    assert not held.is_open
    async with held.use() as again:
        assert again.number == 2
    await held.close()


async def test_it_starts_anew_after_it_was_closed_or_has_ended_by_itself() -> None:
    things = Things()
    held = OnDemand("thing", things.make, idle=60)
    async with held.use():
        pass
    await held.close()
    await held.close()
    assert things.open == []
    async with held.use() as second:
        second.ended.set()
        await until(lambda: not held.is_open)
    async with held.use() as third:
        assert third.number == 3
    await held.close()


async def test_the_reason_why_it_cannot_start_is_told_to_all_who_wait() -> None:
    things = Things()
    things.problem = FreeholdError("thing.cannot-start", "It has no wheels")
    held = OnDemand("thing", things.make, idle=60)
    for _ in range(2):
        with pytest.raises(FreeholdError, match="no wheels"):
            async with held.use():
                pass
    assert things.started == 2
    things.problem = None
    things.held.clear()
    slow = OnDemand("thing", things.make, idle=60, start_timeout=0.05)
    with pytest.raises(FreeholdError, match="did not start within"):
        async with slow.use():
            pass


async def test_closing_one_that_starts_tells_those_who_wait() -> None:
    things = Things()
    things.held.clear()
    held = OnDemand("thing", things.make, idle=60)

    async def use() -> None:
        async with held.use():
            pass

    waiting = asyncio.ensure_future(use())
    await until(lambda: things.started == 1)
    await held.close()
    with pytest.raises(FreeholdError, match="has ended"):
        await waiting


async def test_who_closes_it_waits_until_it_is_gone_also_when_another_closes_it() -> None:
    """A profile is removed after its browser, whoever ended that."""
    things, leaving, may_leave = Things(), asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def make() -> AsyncIterator[Thing]:
        async with things.make() as thing:
            yield thing
            leaving.set()
            await may_leave.wait()

    held = OnDemand("thing", make, idle=60)
    async with held.use():
        assert held.is_wanted
    first = asyncio.ensure_future(held.close())
    await leaving.wait()
    assert not held.is_wanted
    assert not held.is_gone
    second = asyncio.ensure_future(held.close())
    await asyncio.sleep(0)
    assert not second.done()
    may_leave.set()
    await asyncio.gather(first, second)
    assert held.is_gone
    assert not things.open
