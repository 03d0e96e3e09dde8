"""The kill switch asks nobody: every agent is ended by SIGKILL, those that have hardly begun and those that listen to nothing."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.agents.session_harness import STOPPED, SessionHarness, run_harness

from freehold.computer import Computer
from freehold.computer.library.process import Process
from freehold.errors import FreeholdError

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEAF = """
import json, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, frame: open("/workspace/heard", "a").write(f"{number} "))
for line in sys.stdin:
    message = json.loads(line)
    result = {"sessionId": "s", "modes": {"currentModeId": "ask"}}
    if message["method"] == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}}
    if message["method"] == "session/prompt":
        update = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "at work"}
        said = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
        print(json.dumps(said), flush=True)
        for line in sys.stdin:
            open("/workspace/heard", "a").write(line)
        open("/workspace/heard", "a").write("the end of its input ")
        time.sleep(600)
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
AGENTS = """
[agents.deaf]
command = "python3 -I /workspace/deaf.py"
[agents.mute]
command = "/bin/sleep 600"
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Computer, Path]]:
    workspace = tmp_path_factory.mktemp("workspace")
    async with Computer.start(workspace=workspace) as computer:
        yield computer, workspace


@pytest_asyncio.fixture(loop_scope="module")
async def harness(place: tuple[Computer, Path], tmp_path: Path) -> AsyncIterator[SessionHarness]:
    async with run_harness(*place, tmp_path / "home") as harness:
        (place[1] / "deaf.py").write_text(DEAF)
        with harness.home.manifest.open("a") as manifest:
            manifest.write(AGENTS)
        await harness.restart()
        yield harness


async def test_agents_at_work_are_killed_before_anything_else_is_done(
    harness: SessionHarness, place: tuple[Computer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All in one breath: no request to stop, no grace, and nothing to wait for between one and the next."""
    sessions = [await harness.open("deaf") for _ in range(10)]
    for session in sessions:
        await harness.prompt(session, text="work")
    for session in sessions:
        await harness.watchers.until(session, "tool")
    acts: list[str] = []
    struck: list[Process] = []
    kill, waiting = Process.kill, harness.sessions.dependencies.store.turns.list_queued_sessions

    def struck_down(process: Process) -> None:
        acts.append("kill")
        struck.append(process)
        kill(process)

    def looked() -> list[str]:
        acts.append("the rest")
        return waiting()

    monkeypatch.setattr(Process, "kill", struck_down)
    monkeypatch.setattr(harness.sessions.dependencies.store.turns, "list_queued_sessions", looked)
    await harness.sessions.stop_all("enough")
    assert acts[: len(sessions) + 1] == ["kill"] * len(sessions) + ["the rest"]
    for process in struck[: len(sessions)]:
        assert (await process.wait()).signal == 9
    for session in sessions:
        ended = await harness.watchers.until(session, "turn.ended")
        assert ended.data["error"]["code"] == "agent.stopped"
    assert not (place[1] / "heard").exists()


async def test_an_agent_that_has_hardly_begun_is_killed_too(
    harness: SessionHarness, place: tuple[Computer, Path]
) -> None:
    """One that never introduces itself would otherwise live for another minute."""
    session = await harness.open("mute")
    await harness.prompt(session, text="work")
    async with asyncio.timeout(60):
        while not (mutes := [one for one in await place[0].processes() if one.command == ["/bin/sleep", "600"]]):
            continue
    life = harness.sessions._runners[session]
    await harness.sessions.stop_all("enough")
    async with asyncio.timeout(30):  # half of what it would have had
        await life.stopped.wait()
        while mutes[0].pid in [one.pid for one in await place[0].processes()]:
            continue
    assert (await harness.sessions.get(session)).status in ("idle", "failed")


async def test_nothing_starts_an_agent_while_all_is_stopped(
    harness: SessionHarness, place: tuple[Computer, Path]
) -> None:
    """Neither a prompt nor an option, nor what waited behind the turn that was ended."""
    session = await harness.open("deaf")
    await harness.prompt(session, text="work")
    await harness.watchers.until(session, "turn.started")
    await harness.prompt(session, text="and more", when="queue")
    harness.models.stopped = STOPPED
    await harness.sessions.stop_all("enough")
    await harness.watchers.until(session, "turn.ended")
    with pytest.raises(FreeholdError, match="stopped"):
        await harness.prompt(session, text="again")
    with pytest.raises(FreeholdError, match="stopped"):
        await harness.sessions.set_option(session, "mode", "ask")
    assert [one for one in harness.watchers.events[session] if one.kind == "turn.started"][1:] == []
    harness.models.stopped = None
