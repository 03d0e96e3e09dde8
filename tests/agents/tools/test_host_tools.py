"""Host tools, with a whole Freehold, a real agent and whoever else is in the computer."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.agents.whole import Whole, prepare, running
from tests.builtin.closure import link_builtin

from freehold.computer import Computer
from freehold.testing import ScriptedModel

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

POST = """\
import json, sys, urllib.request, urllib.error
headers = dict(pair.split("=", 1) for pair in sys.argv[2:])
request = urllib.request.Request("http://127.0.0.1:3130/mcp", sys.argv[1].encode(), headers)
try:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as model:
        yield model


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    stead = prepare(tmp_path_factory.mktemp("tools"), model.url, ())
    link_builtin(stead.home.agents)
    stead.environment["FREEHOLD_TRACE"] = str(stead.home.root / "trace")
    whole = Whole(stead)
    with running(whole):
        yield whole
        await whole.http.aclose()


async def post(whole: Whole, message: dict[str, Any], **headers: str) -> str:
    """As a program inside would."""
    pairs = [f"{name.replace('_', '-')}={value}" for name, value in headers.items()]
    async with Computer.connect(whole.stead.home.computer_socket) as computer:
        result = await computer.run(["/usr/bin/python3", "-c", POST, json.dumps(message), *pairs])
    return result.stdout.decode().strip() or result.stderr.decode()


async def token_of(whole: Whole, session: str) -> str:
    """What the session's own commands find in their environment."""
    async with whole.watching(session) as watch:
        await whole.prompt(session, "RUN printenv FREEHOLD_TOOLS_TOKEN > /tmp/token")
        await watch.answer("once")
        await watch.until("turn.ended")
    async with Computer.connect(whole.stead.home.computer_socket) as computer:
        return (await computer.run("cat /tmp/token")).stdout.decode().strip()


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": given}}


async def test_the_agent_reads_the_log_unasked_and_undo_is_asked(whole: Whole) -> None:
    """The host asks whatever the agent thinks: a yes takes the change back, and the agent is told."""
    session = await whole.open("builtin")
    async with whole.watching(session) as watch:
        await whole.prompt(session, "WRITE precious.txt one")
        await watch.answer("once")
        await watch.until("turn.ended")
        assert whole.file("precious.txt").exists()
        await whole.prompt(session, 'CALL history_log {"limit": 5}')
        await watch.until("turn.ended")
        assert re.search(r"\d+  .*  turn  ", watch.said())
        entry = (await whole.call("GET", "/v1/history?path=workspace/precious.txt"))["entries"][0]["id"]
        await whole.prompt(session, f'CALL history_undo {{"entry": {entry}}}')
        asked = await watch.until("approval", state="pending")
        assert "precious.txt" in asked["data"]["details"]["input"]
        assert whole.file("precious.txt").exists()
        await whole.call("POST", f"/v1/approvals/{asked['data']['id']}", answer="once")
        await watch.until("turn.ended")
    assert "It was taken back" in watch.said()
    assert not whole.file("precious.txt").exists()


async def test_a_no_to_undo_leaves_the_files(whole: Whole) -> None:
    session = await whole.open("builtin")
    whole.file("kept.txt").write_text("kept")
    async with whole.watching(session) as watch:
        await whole.prompt(session, "CALL history_undo {}")
        await watch.answer("reject")
        await watch.until("turn.ended")
    assert whole.file("kept.txt").exists()
    assert "The user said no" in watch.said()


async def test_a_question_waits_for_the_owner(whole: Whole) -> None:
    session = await whole.open("builtin")
    async with whole.watching(session) as watch:
        await whole.prompt(session, 'CALL ask_owner {"question": "May I go on?"}')
        asked = await watch.answer("once")
        assert asked["data"]["title"] == "May I go on?"
        assert asked["data"]["options"] == ["once", "reject"]
        await watch.until("turn.ended")
    assert "The user says yes." in watch.said()


async def test_a_question_offers_choices_and_takes_words(whole: Whole) -> None:
    """One of the choices, or the owner's own words, reach the agent as they are; what is neither is not taken."""
    session = await whole.open("builtin")
    asked = {"question": "Which colour?", "choices": ["red", "blue\u202e"]}
    async with whole.watching(session) as watch:
        await whole.prompt(session, f"CALL ask_owner {json.dumps(asked)}")
        first = (await watch.until("approval", state="pending"))["data"]
        options = ["red", "blue⟨U+202E⟩"]
        told = {"kind": "question", "input": "Which colour?", "options": options, "free_text": False}
        assert first["details"] == told
        (pending,) = await whole.call("GET", "/v1/approvals")
        assert pending["details"] == told
        for wrong in ({"answer": "once"}, {"answer": "once", "note": "green"}):
            refused = await whole.http.post(f"/v1/approvals/{first['id']}", json=wrong)
            assert refused.json()["error"]["code"] == "approval.wrong-answer"
            assert refused.status_code < 500
        answered = await whole.call("POST", f"/v1/approvals/{first['id']}", answer="once", note="red")
        assert answered["note"] == "red"
        assert (await watch.until("approval", state="answered"))["data"]["note"] == "red"
        await watch.until("turn.ended")
        assert watch.said().endswith("red")
        command = "freehold ask-owner --question 'And why?' --choices because --choices why-not --free-text"
        await whole.prompt(session, f"RUN {command}")
        await watch.answer("once")
        second = (await watch.until("approval", state="pending"))["data"]
        assert second["details"]["options"] == ["because", "why-not"]
        assert second["details"]["free_text"] is True
        await whole.call("POST", f"/v1/approvals/{second['id']}", answer="once", note="it is warm")
        await watch.until("turn.ended")
        assert "it is warm" in watch.said()
        await whole.prompt(session, 'CALL ask_owner {"question": "Sure?", "free_text": true}')
        third = (await watch.until("approval", state="pending"))["data"]
        await whole.call("POST", f"/v1/approvals/{third['id']}", answer="reject", note="not today")
        await watch.until("turn.ended")
    assert "The user says no: not today" in watch.said()
    # An answer is an answer and not a prompt besides.
    assert sum(event["kind"] == "turn.started" for event in await whole.events(session)) == 3


async def test_a_host_is_opened_by_the_owner_alone(whole: Whole) -> None:
    session = await whole.open("builtin")
    async with whole.watching(session) as watch:
        await whole.prompt(session, 'CALL request_egress {"host": "example.org", "why": "the manual"}')
        asked = await watch.until("approval", state="pending")
        assert "example.org:443" not in json.dumps((await whole.call("GET", "/v1/egress"))["rules"])
        await whole.call("POST", f"/v1/approvals/{asked['data']['id']}", answer="session")
        await watch.until("turn.ended")
    assert "The user allowed example.org:443" in watch.said()
    assert "example.org" in json.dumps((await whole.call("GET", "/v1/egress"))["rules"])


async def test_the_command_inside_does_the_same(whole: Whole) -> None:
    """Made from the schemas, on every agent's PATH, read-only, and with the session's own token."""
    session = await whole.open("builtin")
    async with whole.watching(session) as watch:
        ask = "freehold ask-owner --question 'Really?' && touch acted.txt"
        await whole.prompt(session, f"RUN freehold history-log --limit 3 && {ask}")
        await watch.answer("once")
        asked = await watch.answer("reject")
        assert asked["data"]["title"] == "Really?"
        await watch.until("turn.ended")
    assert not whole.file("acted.txt").exists()
    async with Computer.connect(whole.stead.home.computer_socket) as computer:
        bare = await computer.run("/opt/agents/.tools/freehold history-log")
        assert (bare.exit_code, bare.stderr) == (1, b"freehold: only an agent's session may do this\n")
        assert (await computer.run("echo evil >> /opt/agents/.tools/freehold")).exit_code != 0
        helped = await computer.run("/opt/agents/.tools/freehold request-egress --help")
        assert b"--host HOST" in helped.stdout


async def test_strangers_forgers_and_replays_are_refused(whole: Whole) -> None:
    """No token, a made-up one, a browser's page, a name that is not offered, arguments that are not in the schema."""
    session = await whole.open("builtin")
    token = f"Bearer {await token_of(whole, session)}"
    log = call("history_log")
    assert (await post(whole, log, Authorization=token)).startswith("200 ")
    assert await post(whole, log) == "401"
    assert await post(whole, log, Authorization="Bearer " + "x" * 43) == "401"
    assert await post(whole, log, Authorization=token, Origin="http://localhost:5173") == "403"
    for forged in (call("approve"), call("history_log", session="other"), call("history_log", limit="many")):
        assert '"error"' in await post(whole, forged, Authorization=token)
    # Between turns nobody is asked, and so nothing is done.
    assert "only asked while" in await post(whole, call("history_undo"), Authorization=token)
    await whole.call("DELETE", f"/v1/sessions/{session}")
    assert await post(whole, log, Authorization=token) == "401"


async def test_the_timeline_tells_a_session_nothing_of_another(whole: Whole) -> None:
    other = await whole.open("builtin", title="a secret plan")
    session = await whole.open("builtin")
    token = f"Bearer {await token_of(whole, session)}"
    found = await post(whole, call("timeline_search", limit=100), Authorization=token)
    assert session in found
    assert other not in found
    assert "identity." not in found


async def test_an_approval_answers_one_call_only(whole: Whole) -> None:
    """The same call again is another question: what was allowed once is not allowed twice."""
    session = await whole.open("builtin")
    again = 'CALL ask_owner {"question": "Once?"}'
    async with whole.watching(session) as watch:
        await whole.prompt(session, f"{again}\n{again}")
        first = await watch.answer("once")
        second = await watch.answer("reject")
        assert first["data"]["id"] != second["data"]["id"]
        await asyncio.wait_for(watch.until("turn.ended"), 60)
    assert "says no" in watch.said()


async def test_a_trace_holds_the_conversation_and_nothing_that_opens_anything(whole: Whole) -> None:
    """Not the session's token, as we hand it over or as the agent echoes it, nor the placeholder; only the owner reads it."""
    session = await whole.open("builtin")
    async with whole.watching(session) as watch:
        await whole.prompt(session, "RUN printenv FREEHOLD_TOOLS_TOKEN FREEHOLD_MODEL_KEY")
        await watch.answer("once")
        ended = await watch.until("turn.ended")
        assert ended["data"]["stop_reason"] == "end_turn"
    # What the agent's own terminal showed is the owner's to see; here it tells which two these are.
    shown = json.dumps([event["data"] for event in watch.events if event["kind"] == "tool"])
    secrets = set(re.findall(r"[A-Za-z0-9_-]{40,}", shown))
    assert len(secrets) == 2, shown
    folder = whole.stead.home.root / "trace"
    trace = folder / f"builtin-{session}.jsonl"
    lines = trace.read_text()
    assert '> {"jsonrpc"' in lines
    assert "session/new" in lines
    assert "Bearer ***" in lines
    assert "***\\n***" in lines
    for secret in secrets:
        assert secret not in lines
    assert trace.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


BRIDGE = """\
import json, os, subprocess, sys
env = {"FREEHOLD_TOOLS_TOKEN": sys.argv[1], "PATH": os.environ["PATH"]}
lines = "".join(line + chr(10) for line in sys.argv[2:])
done = subprocess.run(["/usr/bin/python3", "/opt/agents/.tools/freehold", "mcp"], input=lines.encode(), env=env,
                      stdout=subprocess.PIPE)
sys.stdout.write(done.stdout.decode())
sys.exit(done.returncode)
"""


async def bridged(whole: Whole, token: str, *messages: str) -> list[dict[str, Any]]:
    """What `freehold mcp` inside answers to these lines."""
    async with Computer.connect(whole.stead.home.computer_socket) as computer:
        result = await computer.run(["/usr/bin/python3", "-c", BRIDGE, token, *messages])
    assert result.exit_code == 0, result.stderr
    return sorted((json.loads(line) for line in result.stdout.splitlines()), key=lambda answer: answer["id"] or 0)


async def test_an_agent_that_knows_mcp_on_stdio_alone_has_the_same_tools(whole: Whole) -> None:
    """`freehold mcp` inside passes on what it is told, answers no notification, and outlives what is not JSON."""
    token = await token_of(whole, await whole.open("builtin"))
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}
    heard = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    answers = await bridged(
        whole, token, *map(json.dumps, (hello, heard, listing)), "{", json.dumps(call("history_log"))
    )
    assert [answer["id"] for answer in answers] == [None, 1, 2, 7]
    assert answers[0]["error"]["code"] == -32700
    assert answers[1]["result"]["serverInfo"]["name"] == "freehold"
    assert "ask_owner" in [tool["name"] for tool in answers[2]["result"]["tools"]]
    assert "content" in answers[3]["result"]
    (refused,) = await bridged(whole, "made-up", json.dumps(listing))
    assert "401" in refused["error"]["message"]
