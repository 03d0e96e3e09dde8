"""Health comes from probes, with timeouts, and state changes are recorded."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.condition import DEADLINE

from freehold.errors import FreeholdError
from freehold.observe.probes import ComponentProbe, ComponentState, HealthMonitor, PartState, ProbeResult

START = datetime(2030, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class FakeComponent:
    """Returns a given result, and counts its probes."""

    def __init__(self, answer: ProbeResult | Exception | None = None) -> None:
        self.answer = answer
        self.asked = 0

    async def __call__(self) -> ProbeResult | None:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_a_component_is_starting_until_it_has_answered() -> None:
    health = HealthMonitor([ComponentProbe("computer", FakeComponent())])
    assert [state.state for state in health.states] == ["starting"]
    assert [state.name for state in health.not_ready] == ["computer"]
    (state,) = await health.probe()
    assert (state.state, state.last_error, health.not_ready) == ("ok", None, ())


async def test_since_moves_only_when_the_state_changes_and_the_last_error_stays() -> None:
    clock, thing = Clock(), FakeComponent()
    changes: list[tuple[str, str]] = []

    async def changed(before: ComponentState, after: ComponentState) -> None:
        changes.append((before.state, after.state))

    health = HealthMonitor([ComponentProbe("memory", thing)], on_change=changed, clock=clock)

    async def ask_later() -> ComponentState:
        clock.now += timedelta(minutes=1)
        return (await health.probe("memory"))[0]

    first, again = await ask_later(), await ask_later()
    assert first.since == again.since == START + timedelta(minutes=1)
    thing.answer = ProbeResult("degraded", "slow, Bearer abcdefghijkl")
    assert (await ask_later()).last_error == "slow, Bearer •••"
    thing.answer = None
    last = await ask_later()
    assert (last.state, last.last_error) == ("ok", "slow, Bearer •••")
    assert last.since == START + timedelta(minutes=4)
    assert changes == [("starting", "ok"), ("ok", "degraded"), ("degraded", "ok")]
    assert last.as_json() == {
        "name": "memory",
        "state": "ok",
        "since": "2030-01-01T00:04:00.000Z",
        "last_error": "slow, Bearer •••",
        "required": True,
        "parts": [],
    }


async def test_a_component_tells_of_each_of_its_parts() -> None:
    parts = (PartState("first", "ok", START, None), PartState("second", "degraded", None, "Bearer abcdefghijkl"))
    health = HealthMonitor([ComponentProbe("relays", FakeComponent(ProbeResult("ok", None, parts)))])
    (state,) = await health.probe()
    assert state.as_json()["parts"] == [
        {"name": "first", "state": "ok", "seen": "2030-01-01T00:00:00.000Z", "error": None},
        {"name": "second", "state": "degraded", "seen": None, "error": "Bearer •••"},
    ]


async def test_only_required_components_hold_back_readiness() -> None:
    health = HealthMonitor(
        [
            ComponentProbe("beads", FakeComponent(ProbeResult("degraded", "slow")), required=False),
            ComponentProbe("mesh", FakeComponent(ProbeResult("off")), required=False),
            ComponentProbe("memory", FakeComponent(ProbeResult("degraded", "slow"))),
            ComponentProbe("computer", FakeComponent()),
        ]
    )
    await health.probe()
    assert [state.name for state in health.not_ready] == ["memory"]


async def test_a_component_that_times_out_has_failed_and_delays_no_other() -> None:
    async def silent() -> None:
        await asyncio.Event().wait()

    health = HealthMonitor(
        [ComponentProbe("silent", silent, timeout=0.01), ComponentProbe("computer", FakeComponent())]
    )
    async with asyncio.timeout(DEADLINE):
        states = await health.probe()
    assert [state.state for state in states] == ["failed", "ok"]
    assert states[0].last_error == "silent did not answer within 0.01 seconds"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FreeholdError("computer.gone", "The computer is gone"), "The computer is gone [computer.gone]"),
        (ConnectionRefusedError(111, "Connection refused"), "cannot be reached: [Errno 111] Connection refused"),
    ],
)
async def test_a_freehold_error_gives_the_reason(error: Exception, words: str) -> None:
    (state,) = await HealthMonitor([ComponentProbe("computer", FakeComponent(error))]).probe()
    assert state.state == "failed"
    assert words in (state.last_error or "")


async def test_a_bug_in_a_probe_shows_only_an_id_that_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    health = HealthMonitor([ComponentProbe("computer", FakeComponent(KeyError("private detail")))])
    with caplog.at_level(logging.ERROR):
        (state,) = await health.probe()
    assert state.state == "failed"
    assert "private detail" not in (state.last_error or "")
    assert getattr(caplog.records[0], "error_id") in (state.last_error or "")  # noqa: B009 - an extra field


async def test_concurrent_calls_share_one_further_probe() -> None:
    entered, go = asyncio.Event(), asyncio.Event()
    asked = 0

    async def slow() -> None:
        nonlocal asked
        asked += 1
        entered.set()
        await go.wait()

    health = HealthMonitor([ComponentProbe("slow", slow, timeout=10)])
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
        group.create_task(health.probe())
        await entered.wait()
        for _ in range(50):
            group.create_task(health.probe())
        await asyncio.sleep(0)
        go.set()
    assert asked == 2


async def test_components_are_probed_at_their_interval() -> None:
    often = asyncio.Event()
    count = 0

    async def probe() -> None:
        nonlocal count
        count += 1
        if count == 3:
            often.set()

    health = HealthMonitor([ComponentProbe("computer", probe, interval=0.001)])
    async with asyncio.timeout(DEADLINE):
        running = asyncio.ensure_future(health.run())
        await often.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert health.not_ready == ()


async def test_an_unknown_component_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FreeholdError, match="no component 'x'") as refused:
        await HealthMonitor([ComponentProbe("computer", FakeComponent())]).probe("x")
    assert "computer" in refused.value.hint
