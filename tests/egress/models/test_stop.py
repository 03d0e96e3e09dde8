"""The kill switch stops model requests at once, calls its callbacks, and survives a restart."""

import asyncio
from pathlib import Path

from tests.egress.models.gateway_harness import GatewayHarness, run_gateway
from tests.support.condition import DEADLINE

from freehold.egress.models import ActiveStop, Ledger
from freehold.timeline import Timeline


async def test_running_requests_are_cut_and_new_ones_refused(gateway: GatewayHarness) -> None:
    calls: list[ActiveStop] = []

    async def tell(stopped: ActiveStop) -> None:
        calls.append(stopped)

    gateway.models.on_stop(tell)
    streaming = asyncio.ensure_future(gateway.ask("messages", "SLOW", stream=True))
    waiting = asyncio.ensure_future(gateway.ask("chat", "FAIL hang"))
    await gateway.provider.wait_received(2)
    async with asyncio.timeout(DEADLINE):
        await gateway.models.stop(why="enough")
        assert (await streaming).text.count("The owner has stopped all agents and models") == 1
        assert (await waiting).status_code == 403
    assert [stopped.why for stopped in calls] == ["enough"]
    async with asyncio.timeout(DEADLINE):
        await gateway.provider.wait_disconnected(2)
    assert (await gateway.ask()).status_code == 403
    assert len(gateway.provider.requests) == 2


async def test_the_kill_switch_survives_a_restart_until_it_is_lifted(tmp_path: Path) -> None:
    async with run_gateway(tmp_path) as gateway:
        await gateway.models.stop()
    async with run_gateway(tmp_path) as gateway:
        assert gateway.models.stopped is not None
        assert (await gateway.ask()).status_code == 403
        await gateway.models.resume()
        assert (await gateway.ask()).status_code == 200


async def test_the_command_line_stops_it_from_another_process(tmp_path: Path) -> None:
    async with run_gateway(tmp_path) as gateway:
        calls = asyncio.Event()

        async def tell(_stopped: ActiveStop) -> None:
            calls.set()

        gateway.models.on_stop(tell)
        streaming = asyncio.ensure_future(gateway.ask("chat", "SLOW", stream=True))
        await gateway.provider.wait_received()
        with Timeline(tmp_path / "timeline.db") as other:
            await asyncio.to_thread(Ledger(other).stop, why="from outside")
        async with asyncio.timeout(DEADLINE):
            await calls.wait()
            assert "stopped all agents" in (await streaming).text


async def test_two_stops_call_back_once_and_a_stored_stop_calls_nobody(tmp_path: Path) -> None:
    calls: list[ActiveStop] = []

    async def tell(stopped: ActiveStop) -> None:
        calls.append(stopped)

    async with run_gateway(tmp_path) as gateway:
        gateway.models.on_stop(tell)
        await gateway.models.stop()
        await gateway.models.stop()
    assert len(calls) == 1


async def begin_slow_stop(gateway: GatewayHarness) -> asyncio.Event:
    """Another process stores a stop, and a callback runs until the event is set."""
    begun, finish = asyncio.Event(), asyncio.Event()

    async def end_slowly(_stopped: ActiveStop) -> None:
        begun.set()
        await finish.wait()

    gateway.models.on_stop(end_slowly)
    await asyncio.to_thread(gateway.models.ledger.stop)
    await begun.wait()
    return finish


async def test_a_stop_waits_for_its_callbacks_when_another_process_stored_it_first(gateway: GatewayHarness) -> None:
    async with asyncio.timeout(DEADLINE):
        finish = await begin_slow_stop(gateway)
        stopping = asyncio.ensure_future(gateway.models.stop())
        assert await gateway.models.read_stop() is not None
        assert not stopping.done()
        finish.set()
        await stopping
        await asyncio.to_thread(gateway.models.ledger.resume)
        assert await gateway.models.read_stop() is None


async def test_lifting_a_stop_does_not_wait_for_its_callbacks(gateway: GatewayHarness) -> None:
    async with asyncio.timeout(DEADLINE):
        finish = await begin_slow_stop(gateway)
        await asyncio.to_thread(gateway.models.ledger.resume)
        assert await gateway.models.read_stop() is None
        finish.set()


async def test_ending_a_session_cuts_only_its_own(gateway: GatewayHarness) -> None:
    mine = asyncio.ensure_future(gateway.ask("chat", "SLOW", stream=True, session="mine"))
    other = asyncio.ensure_future(gateway.ask("chat", "FAIL hang", session="other"))
    await gateway.provider.wait_received(2)
    gateway.models.end_session("mine")
    async with asyncio.timeout(DEADLINE):
        await gateway.provider.wait_disconnected(1)
    assert not other.done()
    gateway.provider.release()
    assert (await other).status_code == 200
    assert "The session has ended" in (await mine).text
