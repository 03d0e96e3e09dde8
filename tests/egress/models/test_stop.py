"""The kill switch closes the models at once, tells who must know, and stays through a restart."""

import asyncio
from pathlib import Path

from tests.egress.models.doorway import Doorway, doorway

from freehold.egress.models import Ledger, Stopped
from freehold.timeline import Timeline


async def test_what_is_under_way_is_cut_and_what_comes_is_refused(door: Doorway) -> None:
    told: list[Stopped] = []

    async def tell(stopped: Stopped) -> None:
        told.append(stopped)

    door.models.on_stop(tell)
    streaming = asyncio.ensure_future(door.ask("messages", "SLOW", stream=True))
    waiting = asyncio.ensure_future(door.ask("chat", "FAIL hang"))
    await door.provider.received(2)
    async with asyncio.timeout(1):
        await door.models.stop(why="enough")
        assert (await streaming).text.count("The owner has stopped everything") == 1
        assert (await waiting).status_code == 403
    assert [stopped.why for stopped in told] == ["enough"]
    async with asyncio.timeout(5):
        await door.provider.hung_up(2)
    assert (await door.ask()).status_code == 403
    assert len(door.provider.requests) == 2


async def test_it_stays_through_a_restart_until_it_is_lifted(tmp_path: Path) -> None:
    async with doorway(tmp_path) as door:
        await door.models.stop()
    async with doorway(tmp_path) as door:
        assert door.models.stopped is not None
        assert (await door.ask()).status_code == 403
        await door.models.resume()
        assert (await door.ask()).status_code == 200


async def test_the_command_line_stops_it_from_another_process(tmp_path: Path) -> None:
    async with doorway(tmp_path) as door:
        told = asyncio.Event()

        async def tell(_stopped: Stopped) -> None:
            told.set()

        door.models.on_stop(tell)
        streaming = asyncio.ensure_future(door.ask("chat", "SLOW", stream=True))
        await door.provider.received()
        with Timeline(tmp_path / "timeline.db") as other:
            await asyncio.to_thread(Ledger(other).stop, why="from outside")
        async with asyncio.timeout(5):
            await told.wait()
            assert "stopped everything" in (await streaming).text


async def test_two_stops_tell_once_and_an_old_stop_tells_nobody(tmp_path: Path) -> None:
    told: list[Stopped] = []

    async def tell(stopped: Stopped) -> None:
        told.append(stopped)

    async with doorway(tmp_path) as door:
        door.models.on_stop(tell)
        await door.models.stop()
        await door.models.stop()
    assert len(told) == 1


async def test_ending_a_session_cuts_only_its_own(door: Doorway) -> None:
    mine = asyncio.ensure_future(door.ask("chat", "SLOW", stream=True, session="mine"))
    other = asyncio.ensure_future(door.ask("chat", "FAIL hang", session="other"))
    await door.provider.received(2)
    door.models.end_session("mine")
    async with asyncio.timeout(5):
        await door.provider.hung_up(1)
    assert not other.done()
    door.provider.release()
    assert (await other).status_code == 200
    assert "The session has ended" in (await mine).text
