"""Nothing is healthy because it was configured: it is asked, in time, and its changes are remembered."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from freehold.errors import FreeholdError
from freehold.observe.probes import Answer, Component, ComponentState, Health

START = datetime(2030, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class Thing:
    """Answers what it is told to, and counts how often it was asked."""

    def __init__(self, answer: Answer | Exception | None = None) -> None:
        self.answer = answer
        self.asked = 0

    async def __call__(self) -> Answer | None:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_a_component_is_starting_until_it_has_answered() -> None:
    health = Health([Component("computer", Thing())])
    assert [state.state for state in health.states] == ["starting"]
    assert [state.name for state in health.missing] == ["computer"]
    (state,) = await health.ask()
    assert (state.state, state.last_error, health.missing) == ("ok", None, ())


async def test_since_moves_only_when_the_state_changes_and_the_last_error_stays() -> None:
    clock, thing = Clock(), Thing()
    changes: list[tuple[str, str]] = []

    async def changed(before: ComponentState, after: ComponentState) -> None:
        changes.append((before.state, after.state))

    health = Health([Component("memory", thing)], on_change=changed, clock=clock)

    async def ask_later() -> ComponentState:
        clock.now += timedelta(minutes=1)
        return (await health.ask("memory"))[0]

    first, again = await ask_later(), await ask_later()
    assert first.since == again.since == START + timedelta(minutes=1)
    thing.answer = Answer("degraded", "slow, Bearer abcdefghijkl")
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
    }


async def test_only_required_components_hold_back_readiness() -> None:
    health = Health(
        [
            Component("beads", Thing(Answer("degraded", "slow")), required=False),
            Component("mesh", Thing(Answer("off")), required=False),
            Component("memory", Thing(Answer("degraded", "slow"))),
            Component("computer", Thing()),
        ]
    )
    await health.ask()
    assert [state.name for state in health.missing] == ["memory"]


async def test_one_that_does_not_answer_in_time_has_failed_and_holds_up_nobody() -> None:
    async def silent() -> None:
        await asyncio.Event().wait()

    health = Health([Component("silent", silent, timeout=0.01), Component("computer", Thing())])
    async with asyncio.timeout(5):
        states = await health.ask()
    assert [state.state for state in states] == ["failed", "ok"]
    assert states[0].last_error == "silent did not answer within 0.01 seconds"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FreeholdError("computer.gone", "The computer is gone"), "The computer is gone [computer.gone]"),
        (ConnectionRefusedError(111, "Connection refused"), "cannot be reached: [Errno 111] Connection refused"),
    ],
)
async def test_a_known_error_says_why(error: Exception, words: str) -> None:
    (state,) = await Health([Component("computer", Thing(error))]).ask()
    assert state.state == "failed"
    assert words in (state.last_error or "")


async def test_a_bug_in_a_probe_shows_only_an_id_that_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    health = Health([Component("computer", Thing(KeyError("private detail")))])
    with caplog.at_level(logging.ERROR):
        (state,) = await health.ask()
    assert state.state == "failed"
    assert "private detail" not in (state.last_error or "")
    assert getattr(caplog.records[0], "error_id") in (state.last_error or "")  # noqa: B009 - an extra field


async def test_a_crowd_that_asks_at_once_costs_one_probe_more_than_the_one_under_way() -> None:
    entered, go = asyncio.Event(), asyncio.Event()
    asked = 0

    async def slow() -> None:
        nonlocal asked
        asked += 1
        entered.set()
        await go.wait()

    health = Health([Component("slow", slow, timeout=10)])
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(health.ask())
        await entered.wait()
        for _ in range(50):
            group.create_task(health.ask())
        await asyncio.sleep(0)
        go.set()
    assert asked == 2


async def test_components_are_asked_on_their_interval_without_being_asked_for() -> None:
    often = asyncio.Event()
    count = 0

    async def probe() -> None:
        nonlocal count
        count += 1
        if count == 3:
            often.set()

    health = Health([Component("computer", probe, interval=0.001)])
    async with asyncio.timeout(5):
        running = asyncio.ensure_future(health.run())
        await often.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert health.missing == ()


async def test_an_unknown_component_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FreeholdError, match="no component 'x'") as refused:
        await Health([Component("computer", Thing())]).ask("x")
    assert "computer" in refused.value.hint
