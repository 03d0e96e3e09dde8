"""What keeps the computer of a whole Freehold awake, or wakes it: a turn that waits for its owner, a routine, an SSH connection."""

import asyncio
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from tests.support.condition import until
from tests.support.freehold import FreeholdHarness
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.computer.library.use import use_socket
from freehold.keeper.calls import SleepStatus

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

FREEHOLD = FreeholdOptions(
    agents=("builtin",),
    manifest='[computer]\nsleep_after = "1s"\n',
    environment={"FREEHOLD_SSH_ENABLED": "true", "HOME": "{home}"},
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningFreehold]:
    async with run_freehold(tmp_path_factory.mktemp("sleep"), FREEHOLD) as running:
        yield running


def read_sleep(harness: FreeholdHarness) -> SleepStatus:
    sleep = harness.status().sleep
    assert sleep is not None
    return sleep


def is_kept_awake(harness: FreeholdHarness) -> bool:
    """Whether it stays awake while the keeper asks three times. Who asks here has not used it for a long time."""
    before = read_sleep(harness)
    with socket.socket(socket.AF_UNIX) as witness:
        witness.settimeout(60)
        witness.connect(str(use_socket(harness.home.computer_socket())))
        with witness.makefile("rwb", buffering=0) as lines:
            for _ in range(3):
                while (line := lines.readline()) != b"ask\n":
                    assert line, "the use socket was closed"
                lines.write(b"unused 1000000\n")
    return not before.asleep and read_sleep(harness).times == before.times


async def test_a_turn_that_waits_for_its_owner_keeps_it_awake(freehold: RunningFreehold) -> None:
    harness = freehold.harness
    session = await freehold.open("builtin")
    async with freehold.watch_new(session) as watch:
        turn = (await freehold.prompt(session, "RUN echo approved > approved.txt"))["turn"]
        asked = await watch.until("approval", state="pending")
        assert await asyncio.to_thread(is_kept_awake, harness)
        await freehold.call("POST", f"/v1/approvals/{asked['data']['id']}", answer="once")
        await watch.until_ended(turn)
    assert freehold.file("approved.txt").read_text() == "approved\n"
    await until(lambda: read_sleep(harness).asleep)


async def test_the_agent_of_a_session_goes_on_after_a_sleep(freehold: RunningFreehold) -> None:
    session = await freehold.open("builtin")
    async with freehold.watch_new(session) as watch:
        for word in ("before", "after"):
            ended = await freehold.run_turn(watch, session, f"SAY {word}")
            assert ended["data"]["stop_reason"] == "end_turn"
            await until(lambda: read_sleep(freehold.harness).asleep)


async def test_the_time_of_a_routine_wakes_it(freehold: RunningFreehold) -> None:
    """Its command runs although the computer slept, which then sleeps again."""
    harness = freehold.harness
    await until(lambda: read_sleep(harness).asleep)
    times = read_sleep(harness).times
    # Long enough for the first request about routines, which loads them: a time that has passed does not come again.
    at = (datetime.now(UTC) + timedelta(seconds=6)).isoformat()
    routine = {"at": at, "command": "touch woken.txt"}
    answer = await freehold.http.post("/v1/routines", json={"name": "wake", "routine": routine})
    assert answer.status_code == 201, answer.text
    await until(freehold.file("woken.txt").exists)
    await until(lambda: read_sleep(harness).asleep)
    assert read_sleep(harness).times > times


async def test_an_ssh_connection_keeps_it_awake_and_starts_the_server(freehold: RunningFreehold) -> None:
    harness = freehold.harness
    assert harness.programs()["ssh"].pid is None
    assert (await freehold.call("GET", "/v1/ssh"))["connected"] == 0
    connected = freehold.file("connected")
    client = await asyncio.to_thread(harness.start, "ssh", "-T", "touch connected; exec sleep 1000")
    try:
        await until(connected.exists)
        assert await asyncio.to_thread(is_kept_awake, harness)
    finally:
        client.kill()
        await asyncio.to_thread(client.communicate)
    await until(lambda: read_sleep(harness).asleep)
