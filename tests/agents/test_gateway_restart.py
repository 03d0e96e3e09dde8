"""A whole Freehold with the built-in agent: prompts right after a restart, one after another, and many at once."""

import asyncio
import itertools
from typing import Any

import pytest
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
RESTARTS = 3
CROWD = 16
FREEHOLD = FreeholdOptions(agents=("builtin",), manifest='[computer.limits]\nmemory = "160MiB"\n')
"""A computer that holds a few built-in agents."""


async def test_prompts_work_as_soon_as_a_restarted_gateway_is_said_to_be_ready(freehold: RunningFreehold) -> None:
    for number in range(RESTARTS):
        said = await asyncio.to_thread(freehold.harness.run, "restart", "gateway", check=True)
        assert "gateway is ready" in said.stdout
        session = await freehold.open("builtin")
        async with freehold.watch_new(session) as watch:
            ended = await freehold.run_turn(watch, session, f"SAY hello {number}")
        assert ended["data"]["stop_reason"] == "end_turn", str(ended)


async def test_words_that_were_shown_stay_when_the_gateway_is_killed(freehold: RunningFreehold) -> None:
    """SIGKILL in the middle of an answer. Both tabs, the search and the export have what was written, once."""
    session = await freehold.open("builtin")
    async with freehold.watch_new(session) as watch:
        turn = (await freehold.prompt(session, "SLOW"))["turn"]
        await watch.until_text("tick 02")
    shown = "".join(delta["text"] for delta in watch.deltas)
    await freehold.wait_stored(session, shown)
    seq = (await freehold.call("GET", f"/v1/sessions/{session}"))["seq"]
    await freehold.kill_gateway()
    async with freehold.watch(session, after=seq) as late, freehold.watch(session) as fresh:
        assert (await late.until_ended(turn))["data"]["stop_reason"] == "interrupted"
        await fresh.until_ended(turn)
    assert late.kinds() == ["message", "error", "turn.ended"]
    assert shown in late.text()
    assert fresh.text() == late.text()
    found = (await freehold.call("GET", "/v1/sessions?query=tick%2002"))["sessions"]
    assert session in [one["id"] for one in found]
    exported = (await freehold.http.get(f"/v1/sessions/{session}/export?format=markdown")).text
    assert exported.count("tick 02") == 1
    # The next turn goes on, and what was interrupted is not told again.
    async with freehold.watch_new(session) as watch:
        await freehold.run_turn(watch, session, "SAY and on")
    assert "tick" not in watch.text()
    assert (
        "".join(one["data"]["text"] for one in await freehold.events(session) if one["kind"] == "message").count(
            "tick 02"
        )
        == 1
    )


async def test_prompts_work_as_soon_as_a_restarted_computer_is_said_to_be_ready(freehold: RunningFreehold) -> None:
    await asyncio.to_thread(freehold.harness.run, "restart", "computer", check=True)
    session = await freehold.open("builtin")
    async with freehold.watch_new(session) as watch:
        ended = await freehold.run_turn(watch, session, "SAY hello")
    assert ended["data"]["stop_reason"] == "end_turn", str(ended)


async def test_the_built_in_agents_cost_of_a_turn_does_not_grow_with_the_turns_before_it(
    freehold: RunningFreehold,
) -> None:
    """It only appends to the file of its session, and as much for the last turn as for an early one."""
    session = await freehold.open("builtin")

    def read_newest() -> tuple[int, bytes]:
        files = [path for path in freehold.home.agent_home.rglob("*.jsonl") if path.parent.name == "sessions"]
        newest = max(files, key=lambda path: path.stat().st_mtime_ns)
        return newest.stat().st_ino, newest.read_bytes()

    written: list[bytes] = []
    inodes = set()
    async with freehold.watch_new(session) as watch:
        for _ in range(10):
            assert (await freehold.run_turn(watch, session, "SAY hello"))["data"]["stop_reason"] == "end_turn"
            inode, content = read_newest()
            written.append(content)
            inodes.add(inode)
    assert len(inodes) == 1
    assert all(after.startswith(before) for before, after in itertools.pairwise(written))
    growth = [len(after) - len(before) for before, after in itertools.pairwise(written)]
    assert max(growth) <= min(growth) + 64, growth


async def test_more_prompts_than_memory_holds_wait_and_everybody_is_told(freehold: RunningFreehold) -> None:
    sessions = [await freehold.open("builtin") for _ in range(CROWD)]
    for session in sessions:
        await freehold.prompt(session, "SLOW")

    async def find_last() -> Any:
        """The last of the queue, once agents wait for memory and not only for those that start."""
        found = await freehold.call("GET", f"/v1/sessions/{sessions[-1]}")
        return found if found["waiting"] is not None and found["waiting"]["reason"] == "memory" else None

    last = await until(find_last)
    assert last["status"] == "queued"
    assert "which is what 160 MiB hold" in last["waiting"]["message"]
    listed = {row["id"]: row for row in (await freehold.call("GET", "/v1/sessions?limit=200"))["sessions"]}
    assert listed[last["id"]]["waiting"] is not None
    chat = await asyncio.to_thread(freehold.harness.start, "chat", "-p", "SAY my turn")
    assert chat.stdout is not None
    said = await asyncio.to_thread(chat.stdout.readline)
    assert said.startswith("Waiting: "), said
    for session in sessions:
        cancelled = await freehold.call("POST", f"/v1/sessions/{session}/cancel")
        assert cancelled["waiting"] is None
    rest, trouble = await asyncio.to_thread(chat.communicate)
    assert "my turn" in rest, (rest, trouble)
