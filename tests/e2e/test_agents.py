"""Real agents, a whole Freehold, a scripted model: from a prompt to a file on the disk and its entry in history."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.agents.whole import KEY, Json, Watch, Whole, prepare, running

from freehold.testing import ScriptedModel

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
AGENTS = ("opencode", "claude", "codex", "builtin")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as model:
        yield model


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    whole = Whole(prepare(tmp_path_factory.mktemp("whole"), model.url, AGENTS))
    with running(whole):
        yield whole
        await whole.http.aclose()


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def nobody_left_at_work(whole: Whole) -> AsyncIterator[None]:
    """Each agent takes half a gigabyte of the computer: those of one test end with it."""
    yield
    for row in (await whole.call("GET", "/v1/sessions"))["sessions"]:
        await whole.call("DELETE", f"/v1/sessions/{row['id']}")


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_prompt_becomes_a_file_that_the_owner_allowed(agent: str, whole: Whole, model: ScriptedModel) -> None:
    """Prompt, tool call, approval with the exact command, file on disk, entry in history, final words, cost of tokens."""
    session = await whole.open(agent)
    async with whole.watching(session) as watch:
        await whole.prompt(session, f"ESCALATE\nRUN echo hello > {agent}.txt")
        asked = await watch.answer("once")
        assert f"echo hello > {agent}.txt" in asked["data"]["details"]["command"]
        assert not whole.file(f"{agent}.txt").exists() or asked
        ended = await watch.until("turn.ended")
    assert ended["data"]["stop_reason"] == "end_turn", watch.events
    assert whole.file(f"{agent}.txt").read_text() == "hello\n"
    assert "Done." in watch.said() or "Done." in "".join(delta["text"] for delta in watch.deltas)
    changes = ended["data"]["changes"]
    assert changes["added"] >= 1
    entry = (await whole.call("GET", f"/v1/history/{changes['entry']}"))["entry"]
    assert entry["who"]["session"] == session
    assert entry["who"]["agent"] == agent
    assert ended["data"]["usage"]["input"] > 0
    assert KEY in {request.key for request in model.requests}
    assert [event["seq"] for event in watch.events] == sorted({event["seq"] for event in watch.events})


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_no_is_a_no(agent: str, whole: Whole) -> None:
    session = await whole.open(agent)
    async with whole.watching(session) as watch:
        await whole.prompt(session, f"ESCALATE\nRUN echo no > refused-{agent}.txt")
        await watch.answer("reject")
        ended = await watch.until("turn.ended")
    assert ended["data"]["stop_reason"] in ("end_turn", "cancelled", "refusal")
    assert not whole.file(f"refused-{agent}.txt").exists()


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_turn_is_cancelled_while_the_model_speaks(agent: str, whole: Whole) -> None:
    session = await whole.open(agent)
    async with whole.watching(session) as watch:
        await whole.prompt(session, "SLOW")
        await watch.until("turn.started")
        await whole.call("POST", f"/v1/sessions/{session}/cancel")
        ended = await watch.until("turn.ended")
    assert ended["data"]["stop_reason"] == "cancelled"
    assert (await whole.call("GET", f"/v1/sessions/{session}"))["status"] == "idle"


@pytest.mark.parametrize("fault", ["429", "malformed"])
async def test_a_provider_that_fails_ends_the_turn_and_not_the_session(
    fault: str, whole: Whole, model: ScriptedModel
) -> None:
    """Whatever the agent makes of it, its turn comes to an end that is told, and the next one works."""
    session = await whole.open("codex")
    async with whole.watching(session) as watch:
        await whole.prompt(session, f"FAIL {fault}")
        await watch.until("turn.started")
        ended = await watch.until("turn.ended")
        assert ended["data"]["stop_reason"]
        await whole.prompt(session, "SAY recovered")
        await watch.until("turn.ended")
    assert "recovered" in watch.said()


async def told(watch: Watch, whole: Whole, session: str, text: str) -> Json:
    """A prompt to the end of its turn; what is asked is allowed."""
    turn = (await whole.prompt(session, text))["turn"]
    while True:
        event = await watch.next()
        if event["kind"] == "approval" and event["data"]["state"] == "pending":
            await whole.call("POST", f"/v1/approvals/{event['data']['id']}", answer="once")
        if event["kind"] == "turn.ended" and event["turn"] == turn:
            return event


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_undo_takes_the_work_and_not_the_agents_memory(agent: str, whole: Whole, model: ScriptedModel) -> None:
    """Talk alone is no entry; with a turn undone the agent still knows what was said; a rewind takes both."""
    session = await whole.open(agent)
    async with whole.watching(session) as watch:
        talked = await told(watch, whole, session, "SAY my name is Queequeg")
        changes = talked["data"]["changes"]
        assert (changes["added"], changes["changed"], changes["removed"]) == (0, 0, 0)
        assert changes["entry"] == changes["before"]
        assert session not in json.dumps(await whole.call("GET", "/v1/history"))
        worked = await told(watch, whole, session, f"ESCALATE\nRUN echo hi > {agent}-undone.txt")
        assert whole.file(f"{agent}-undone.txt").exists()
        undone = await whole.call("POST", "/v1/history/undo", entry=worked["data"]["changes"]["entry"])
        assert undone["unsettled"] == []
        assert not whole.file(f"{agent}-undone.txt").exists()
        model.requests.clear()
        await told(watch, whole, session, "SAY and yours?")
        assert any("Queequeg" in request.body.decode() for request in model.requests), "it has forgotten the talk"
        worked = await told(watch, whole, session, f"ESCALATE\nRUN echo hi > {agent}-rewound.txt")
        await whole.call("POST", f"/v1/sessions/{session}/rewind", turn=worked["turn"], what="both")
        assert not whole.file(f"{agent}-rewound.txt").exists()
        model.requests.clear()
        await told(watch, whole, session, "SAY once more")
        assert any("Queequeg" in request.body.decode() for request in model.requests), "it was not told the rest"
        assert not any(f"{agent}-rewound.txt" in request.body.decode() for request in model.requests)


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_session_survives_the_gateways_violent_end(agent: str, whole: Whole) -> None:
    """kill -9 in the middle of a turn with a question open: the turn says so, the question waits, the agent goes on."""
    session = await whole.open(agent)
    async with whole.watching(session) as watch:
        await whole.prompt(session, "SAY my name is Ishmael")
        await watch.until("turn.ended")
        await whole.prompt(session, f"ESCALATE\nRUN echo later > {agent}-later.txt")
        asked = await watch.until("approval", state="pending")
    await whole.kill_gateway()
    pending = await whole.call("GET", "/v1/approvals")
    assert asked["data"]["id"] in [one["id"] for one in pending]
    events = await whole.events(session)
    assert [event["data"]["stop_reason"] for event in events if event["kind"] == "turn.ended"][-1] == "interrupted"
    assert sum(event["kind"] == "turn.started" for event in events) == 2
    await whole.call("POST", f"/v1/approvals/{asked['data']['id']}", answer="reject")
    async with whole.watching(session, after=events[-1]["seq"]) as watch:
        # The scripted model may take up the old prompt again, which the agent remembers; no is still no.
        await watch.refuse_until_ended()
        await whole.prompt(session, "SAY still here")
        await watch.refuse_until_ended()
    assert "still here" in watch.said()
    assert not whole.file(f"{agent}-later.txt").exists()


async def test_several_agents_work_at_once(whole: Whole) -> None:
    sessions = {agent: await whole.open(agent) for agent in AGENTS}
    for agent, session in sessions.items():
        await whole.prompt(session, f"SAY I am {agent}")
    for agent, session in sessions.items():
        async with whole.watching(session) as watch:
            await watch.until("turn.ended")
        assert f"I am {agent}" in watch.said()


async def test_the_kill_switch_ends_every_agent(whole: Whole) -> None:
    session = await whole.open("codex")
    async with whole.watching(session) as watch:
        await whole.prompt(session, "SLOW")
        await watch.until("turn.started")
        await whole.call("POST", "/v1/stop")
        ended = await watch.until("turn.ended")
        assert ended["data"]["error"]["code"] == "agent.stopped"
        await whole.call("POST", "/v1/stop/lift")
        await whole.prompt(session, "SAY lifted")
        # What it says depends on whether it had written the cut-off prompt down; that it works again does not.
        assert (await watch.until("turn.ended"))["data"].get("error") is None
    assert watch.said()


async def test_a_budget_that_is_reached_stops_the_work_and_says_so(whole: Whole) -> None:
    """The owner reads why in the session; lifted, the work goes on."""
    session = await whole.open("builtin")
    async with whole.watching(session) as watch:
        await whole.call("PUT", "/v1/budgets", scope="*", day_tokens=1)
        try:
            await whole.prompt(session, "SAY never said")
            ended = await watch.until("turn.ended")
        finally:
            await whole.call("PUT", "/v1/budgets", scope="*")
        told = watch.said() + json.dumps(ended["data"])
        assert "budget" in told.lower()
        assert "never said" not in watch.said()
        await whole.prompt(session, "SAY lifted")
        await watch.until("turn.ended")
    assert "lifted" in watch.said()
