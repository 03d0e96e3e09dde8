"""The computer of a browser is stopped whatever happens in it, and the reason of a failure is told as it is."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from tests.support.condition import until

from freehold.browser.section import BrowserSection
from freehold.computer import Computer
from freehold.computer.contract.conventions import EGRESS_PORT
from freehold.computer.library.tunnel import TunnelHandler
from freehold.errors import FreeholdError
from freehold.gateway.browser_host import GatewayBrowserHost
from freehold.gateway.computer_access import ComputerAccess
from freehold.keeper.calls import KeeperCaller, RemoveKeptHome, StartComputer, StopComputer


class RecordingKeeper:
    def __init__(self) -> None:
        self.calls: list[object] = []

    async def call(self, call: object, timeout: float | None = None) -> None:
        self.calls.append(call)
        if isinstance(call, StopComputer):
            raise FreeholdError("computer.not-temporary", "It has ended already")


class FakeLink:
    computer = "the computer"

    async def wait_served(self) -> None:
        pass


class FakeAccess:
    """As the real one: what its block raises comes out in a group."""

    served: Mapping[int, TunnelHandler] = {}

    @asynccontextmanager
    async def link_computer(self, name: str, handlers: Mapping[int, TunnelHandler]) -> AsyncIterator[FakeLink]:
        self.served = handlers
        async with asyncio.TaskGroup():
            yield FakeLink()


def make_host(access: FakeAccess, keeper: RecordingKeeper, profile: Any = "session") -> GatewayBrowserHost:
    def computer_of(_session: str) -> Computer:
        raise FreeholdError("computer.not-connected", "not in this test")

    section = BrowserSection(enabled=True, profile=profile)
    return GatewayBrowserHost(
        cast("ComputerAccess", access), cast("KeeperCaller", keeper), section, None, computer_of, ()
    )


@pytest.mark.parametrize("profile", ["session", "kept"])
async def test_it_has_egress_and_nothing_else_and_is_stopped_after_a_failure(profile: str) -> None:
    access, keeper = FakeAccess(), RecordingKeeper()
    host = make_host(access, keeper, profile)

    async def fail() -> None:
        async with host.open_computer("s1", "browser-1") as computer:
            assert computer == cast("Computer", "the computer")
            raise FreeholdError("browser.not-started", "/usr/bin/false has ended")

    with pytest.raises(FreeholdError, match="has ended") as caught:
        await fail()
    assert caught.value.code == "browser.not-started"
    assert set(access.served) == {EGRESS_PORT}
    start, stop = keeper.calls
    assert isinstance(start, StartComputer)
    assert (start.agents, start.workspace, start.copy, start.who) == (False, None, None, "session:s1")
    assert start.kept_home == ("browser-1" if profile == "kept" else None)
    assert stop == StopComputer("browser-1")
    await host.forget("browser-1")
    assert keeper.calls[-1] == RemoveKeptHome("browser-1")


async def test_a_bug_is_not_hidden_and_a_cancelled_start_is_stopped() -> None:
    access, keeper = FakeAccess(), RecordingKeeper()
    host = make_host(access, keeper)

    async def fail() -> None:
        async with host.open_computer("s1", "browser-1"):
            raise ValueError("a bug")

    with pytest.raises(BaseExceptionGroup):
        await fail()

    async def hold() -> None:
        async with host.open_computer("s1", "browser-1"):
            await asyncio.Event().wait()

    task = asyncio.ensure_future(hold())
    await until(lambda: bool(keeper.calls[2:]))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert keeper.calls[-1] == StopComputer("browser-1")
