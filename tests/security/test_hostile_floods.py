"""A hostile agent sends little and makes the host store or do much."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.security.hostile_session import HostileHarness, run_hostile_harness, tool_call

from freehold.agents.sessions import session_log
from freehold.computer import Computer

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 4_000_000


@pytest_asyncio.fixture(loop_scope="module")
async def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HostileHarness]:
    monkeypatch.setattr(session_log, "MAX_TURN", LIMIT)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with (
        Computer.start(workspace=workspace) as computer,
        run_hostile_harness(computer, workspace, tmp_path / "home") as harness,
    ):
        yield harness


async def test_no_agent_fills_the_hosts_disk_through_its_transcript(hostile: HostileHarness) -> None:
    """Each update of 100 bytes stored ten megabytes: the state of the whole call."""
    session = await hostile.open()
    ended = await session.play({"inflate": {"parts": 50, "count": 400}})
    assert (ended["stop_reason"], ended["error"]["code"]) == ("error", "agent.too-large")
    assert "more than 3 MB for the transcript in one turn" in ended["error"]["message"]
    timeline = hostile.base.home.timeline
    stored = sum(file.stat().st_size for file in timeline.parent.glob(f"{timeline.name}*"))
    assert stored < 5 * LIMIT
    # The session goes on with the next prompt, and so does every other.
    session.forget_said()
    assert (await session.play({"say": "back"}))["stop_reason"] == "end_turn"
    assert session.said == "back\n"


async def test_no_agent_fills_it_with_messages_either(hostile: HostileHarness) -> None:
    session = await hostile.open()
    block = {"content": {"type": "text", "text": "x" * 50_000}}
    kinds = ("agent_message_chunk", "agent_thought_chunk")
    acts = [{"update": {"sessionUpdate": kind, **block}} for kind in kinds]
    ended = await session.play({"repeat": {"count": 50, "acts": acts}})
    assert ended["error"]["code"] == "agent.too-large"


async def test_an_ordinary_turn_is_far_from_the_limit(hostile: HostileHarness) -> None:
    session = await hostile.open()
    ended = await session.play({"inflate": {"parts": 2, "count": 10}}, {"flood": {"count": 10, "size": 1_000}})
    assert ended["stop_reason"] == "end_turn"


async def test_a_question_that_is_too_large_to_show_is_not_stored_whole(hostile: HostileHarness) -> None:
    """Sixty-four open questions of eight megabytes would be read again for every list of approvals."""
    session = await hostile.open()
    path = "/workspace/" + "long/" * 600
    names = {"kind": "edit", "rawInput": {"path": [f"{path}{number}" for number in range(150)]}}
    asked = await session.ask(tool_call(**names))
    assert asked.as_json()["options"] == ["once", "reject"]
    ((size,),) = hostile.base.sessions.dependencies.store.timeline.query("SELECT length(data) FROM agents_approval")
    assert asked.as_json()["hidden_bytes"] + size > 150 * len(path)
    assert asked.data["subjects"] == []
    await session.stop()
