"""Real agents in a complete Freehold with a scripted model: from a prompt to a file on disk and its entry in history."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.running_freehold import KEY, AgentSession, FreeholdOptions, RunningFreehold

from freehold.computer.contract.conventions import WORKSPACE

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("opencode", "claude", "codex", "builtin"))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=FREEHOLD.agents)
async def session(request: pytest.FixtureRequest, freehold: RunningFreehold) -> AsyncIterator[AgentSession]:
    """One session with each agent. All tests with the same agent use it, because the start of an agent costs seconds."""
    session = AgentSession(request.param, await freehold.open(request.param))
    yield session
    await freehold.call("DELETE", f"/v1/sessions/{session.id}")


async def test_a_prompt_becomes_a_file_that_the_owner_allowed(session: AgentSession, freehold: RunningFreehold) -> None:
    """Tool call, approval with the exact command, file on disk, entry in history, final message, tokens."""
    name = f"{session.agent}.txt"
    async with freehold.watch_new(session.id) as watch:
        await freehold.prompt(session.id, f"ESCALATE\nRUN echo hello > {name}")
        asked = await watch.until("approval", state="pending")
        assert f"echo hello > {name}" in asked["data"]["details"]["command"]
        assert not freehold.file(name).exists()
        await freehold.call("POST", f"/v1/approvals/{asked['data']['id']}", answer="once")
        ended = await watch.until("turn.ended")
    assert ended["data"]["stop_reason"] == "end_turn", watch.events
    assert freehold.file(name).read_text() == "hello\n"
    assert "Done." in watch.text() or "Done." in "".join(delta["text"] for delta in watch.deltas)
    changes = ended["data"]["changes"]
    assert changes["added"] >= 1
    entry = (await freehold.call("GET", f"/v1/history/{changes['entry']}"))["entry"]
    assert entry["who"]["session"] == session.id
    assert entry["who"]["agent"] == session.agent
    assert ended["data"]["usage"]["input"] > 0
    assert KEY in {request.key for request in freehold.model.requests}
    assert [event["seq"] for event in watch.events] == sorted({event["seq"] for event in watch.events})


async def test_a_rejected_command_is_not_run(session: AgentSession, freehold: RunningFreehold) -> None:
    name = f"refused-{session.agent}.txt"
    async with freehold.watch_new(session.id) as watch:
        await freehold.prompt(session.id, f"ESCALATE\nRUN echo no > {name}")
        await watch.answer("reject")
        ended = await watch.until("turn.ended")
    assert ended["data"]["stop_reason"] in ("end_turn", "cancelled", "refusal")
    assert not freehold.file(name).exists()


@pytest.mark.parametrize("agent", FREEHOLD.agents)
async def test_a_file_is_written_by_the_agents_own_tool_after_the_owner_saw_it(
    freehold: RunningFreehold, agent: str
) -> None:
    """Codex offers its tool for patches to models that it knows; its own sandbox refuses to write, and ours is the wall."""
    session = await freehold.open(agent, **({"model": "local/gpt-5.5"} if agent == "codex" else {}))
    name = f"written-{agent}.txt"
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, f"WRITE {WORKSPACE}/{name} made")
        asked = await watch.until("approval", state="pending")
        assert not freehold.file(name).exists()
        assert (asked["data"]["kind"], asked["data"]["complete"]) == ("edit", True)
        assert "made" in str(asked["data"]["parts"])
        await freehold.call("POST", f"/v1/approvals/{asked['data']['id']}", answer="once")
        await watch.until("turn.ended")
    assert freehold.file(name).read_text() == "made\n"
    await freehold.call("DELETE", f"/v1/sessions/{session}")


async def last_entry(freehold: RunningFreehold) -> int:
    return int((await freehold.call("GET", "/v1/history?limit=1"))["entries"][0]["id"])


def knows(freehold: RunningFreehold, text: str) -> bool:
    """Whether the agent has sent this text to the model since the record of requests was cleared."""
    return any(text in request.body.decode() for request in freehold.model.requests)


async def test_an_undo_changes_the_files_and_not_the_agents_memory(
    session: AgentSession, freehold: RunningFreehold
) -> None:
    """A turn without changes makes no entry. After an undo the agent remembers the conversation; a rewind removes both."""
    async with freehold.watch_new(session.id) as watch:
        last = await last_entry(freehold)
        talked = await freehold.run_turn(watch, session.id, "SAY my name is Queequeg")
        changes = talked["data"]["changes"]
        assert (changes["added"], changes["changed"], changes["removed"]) == (0, 0, 0)
        assert changes["entry"] == changes["before"]
        assert await last_entry(freehold) == last
        undone, rewound = (f"{session.agent}-{name}.txt" for name in ("undone", "rewound"))
        worked = await freehold.run_turn(watch, session.id, f"ESCALATE\nRUN echo hi > {undone}")
        assert freehold.file(undone).exists()
        answer = await freehold.call("POST", "/v1/history/undo", entry=worked["data"]["changes"]["entry"])
        assert answer["unsettled"] == []
        assert not freehold.file(undone).exists()
        freehold.model.requests.clear()
        await freehold.run_turn(watch, session.id, "SAY and yours?")
        assert knows(freehold, "Queequeg")
        worked = await freehold.run_turn(watch, session.id, f"ESCALATE\nRUN echo hi > {rewound}")
        await freehold.call("POST", f"/v1/sessions/{session.id}/rewind", turn=worked["turn"], what="both")
        assert not freehold.file(rewound).exists()
        entries = (await freehold.call("GET", "/v1/history?limit=5"))["entries"]
        who = next(entry["who"] for entry in entries if entry["kind"] == "restore")
        assert (who["by"], who["via"]) == ("owner", "token")
        freehold.model.requests.clear()
        await freehold.run_turn(watch, session.id, "SAY once more")
        assert knows(freehold, "Queequeg")
        assert not knows(freehold, rewound)


async def test_a_session_survives_a_kill_of_the_gateway(session: AgentSession, freehold: RunningFreehold) -> None:
    """SIGKILL during a turn with a permission request: the turn is interrupted, the request waits, the session works."""
    name = f"{session.agent}-later.txt"
    async with freehold.watch_new(session.id) as watch:
        turn = (await freehold.prompt(session.id, f"ESCALATE\nRUN echo later > {name}"))["turn"]
        asked = await watch.until("approval", state="pending")
    await freehold.kill_gateway()
    assert asked["data"]["id"] in [one["id"] for one in await freehold.call("GET", "/v1/approvals")]
    events = [event for event in await freehold.events(session.id) if event["turn"] == turn]
    assert [event["data"]["stop_reason"] for event in events if event["kind"] == "turn.ended"] == ["interrupted"]
    assert [event["kind"] for event in events].count("turn.started") == 1
    await freehold.call("POST", f"/v1/approvals/{asked['data']['id']}", answer="reject")
    async with freehold.watch(session.id, after=events[-1]["seq"]) as watch:
        # The agent remembers the old prompt, and the scripted model may act on it again. It is rejected again.
        await watch.answer_all("reject")
        await freehold.prompt(session.id, "SAY still here")
        await watch.answer_all("reject")
    assert "still here" in watch.text()
    assert not freehold.file(name).exists()


async def test_a_turn_is_cancelled_while_the_model_answers(session: AgentSession, freehold: RunningFreehold) -> None:
    # Last: an agent may send a cancelled prompt again with the next one, and this one takes long.
    async with freehold.watch_new(session.id) as watch:
        await freehold.prompt(session.id, "SLOW")
        await watch.until_text("tick 00")
        await freehold.call("POST", f"/v1/sessions/{session.id}/cancel")
        ended = await watch.until("turn.ended")
    assert ended["data"]["stop_reason"] == "cancelled"
    assert (await freehold.call("GET", f"/v1/sessions/{session.id}"))["status"] == "idle"


async def test_several_agents_work_at_once(freehold: RunningFreehold) -> None:
    sessions = {agent: await freehold.open(agent) for agent in FREEHOLD.agents}
    for agent, session in sessions.items():
        await freehold.prompt(session, f"SAY I am {agent}")
    for agent, session in sessions.items():
        async with freehold.watch(session) as watch:
            await watch.until("turn.ended")
        assert f"I am {agent}" in watch.text()
        await freehold.call("DELETE", f"/v1/sessions/{session}")


async def test_the_kill_switch_ends_every_agent(freehold: RunningFreehold) -> None:
    session = await freehold.open("codex")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "SLOW")
        await watch.until("turn.started")
        await freehold.call("POST", "/v1/stop")
        ended = await watch.until("turn.ended")
        assert ended["data"]["error"]["code"] == "agent.stopped"
        await freehold.call("POST", "/v1/stop/lift")
        await freehold.prompt(session, "SAY lifted")
        # Its answer depends on whether it stored the interrupted prompt. That it works again does not.
        assert (await watch.until("turn.ended"))["data"].get("error") is None
    assert watch.text()
