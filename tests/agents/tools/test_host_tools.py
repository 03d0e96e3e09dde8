"""Host tools, with a complete Freehold, a real agent and other programs in the computer."""

import asyncio
import json
import re
from typing import Any

import pytest
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.computer import Computer

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(
    agents=("builtin",), manifest='[slots]\npods = "local"\n', environment={"FREEHOLD_TRACE": "{home}/trace"}
)

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


async def post(freehold: RunningFreehold, message: dict[str, Any], **headers: str) -> str:
    """Sends a request as a program inside the computer does."""
    pairs = [f"{name.replace('_', '-')}={value}" for name, value in headers.items()]
    async with Computer.connect(freehold.harness.home.computer_socket()) as computer:
        result = await computer.run(["/usr/bin/python3", "-c", POST, json.dumps(message), *pairs])
    return result.stdout.decode().strip() or result.stderr.decode()


async def token_of(freehold: RunningFreehold, session: str) -> str:
    """The token in the environment of the session's commands."""
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "RUN printenv FREEHOLD_TOOLS_TOKEN > /tmp/token")
        await watch.answer("once")
        await watch.until("turn.ended")
    async with Computer.connect(freehold.harness.home.computer_socket()) as computer:
        return (await computer.run("cat /tmp/token")).stdout.decode().strip()


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": given}}


async def test_the_log_is_read_without_asking_and_undo_is_asked(freehold: RunningFreehold) -> None:
    """The host asks in every mode of the agent. After a yes the change is undone and the agent learns it."""
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "WRITE precious.txt one")
        await watch.answer("once")
        await watch.until("turn.ended")
        assert freehold.file("precious.txt").exists()
        await freehold.prompt(session, 'CALL history_log {"limit": 5}')
        await watch.until("turn.ended")
        assert re.search(r"\d+  .*  turn  ", watch.text())
        entry = (await freehold.call("GET", "/v1/history?path=workspace/precious.txt"))["entries"][0]["id"]
        await freehold.prompt(session, f'CALL history_undo {{"entry": {entry}}}')
        asked = await watch.until("approval", state="pending")
        assert "precious.txt" in asked["data"]["parts"][0]["text"]
        assert freehold.file("precious.txt").exists()
        await freehold.call("POST", f"/v1/approvals/{asked['data']['id']}", answer="once")
        await watch.until("turn.ended")
    assert "The change was undone" in watch.text()
    assert not freehold.file("precious.txt").exists()
    entries = (await freehold.call("GET", "/v1/history?limit=5"))["entries"]
    who = next(entry["who"] for entry in entries if entry["kind"] == "undo")
    assert (who["by"], who["via"], who["session"]) == ("agent", "session", session)


async def test_a_rejected_undo_changes_nothing(freehold: RunningFreehold) -> None:
    session = await freehold.open("builtin")
    freehold.file("kept.txt").write_text("kept")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "CALL history_undo {}")
        await watch.answer("reject")
        await watch.until("turn.ended")
    assert freehold.file("kept.txt").exists()
    assert "The user said no" in watch.text()


async def test_a_question_waits_for_the_owner(freehold: RunningFreehold) -> None:
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, 'CALL ask_owner {"question": "May I go on?"}')
        asked = await watch.answer("once")
        assert asked["data"]["title"] == "May I go on?"
        assert asked["data"]["options"] == ["once", "reject"]
        await watch.until("turn.ended")
    assert "The user says yes." in watch.text()


async def test_a_question_can_have_choices_and_free_text(freehold: RunningFreehold) -> None:
    """The agent gets one of the choices or the owner's text unchanged. Any other answer is refused."""
    session = await freehold.open("builtin")
    asked = {"question": "Which colour?", "choices": ["red", "blue\u202e"]}
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, f"CALL ask_owner {json.dumps(asked)}")
        first = (await watch.until("approval", state="pending"))["data"]
        options = ["red", "blue⟨U+202E⟩"]
        told = {"kind": "question", "input": "Which colour?", "options": options, "free_text": False}
        assert first["details"] == told
        (pending,) = await freehold.call("GET", "/v1/approvals")
        assert pending["details"] == told
        for wrong in ({"answer": "once"}, {"answer": "once", "note": "green"}):
            refused = await freehold.http.post(f"/v1/approvals/{first['id']}", json=wrong)
            assert refused.json()["error"]["code"] == "approval.wrong-answer"
            assert refused.status_code < 500
        answered = await freehold.call("POST", f"/v1/approvals/{first['id']}", answer="once", note="red")
        assert answered["note"] == "red"
        assert (await watch.until("approval", state="answered"))["data"]["note"] == "red"
        await watch.until("turn.ended")
        assert watch.text().endswith("red")
        command = "freehold ask-owner --question 'And why?' --choices because --choices why-not --free-text"
        await freehold.prompt(session, f"RUN {command}")
        await watch.answer("once")
        second = (await watch.until("approval", state="pending"))["data"]
        assert second["details"]["options"] == ["because", "why-not"]
        assert second["details"]["free_text"] is True
        await freehold.call("POST", f"/v1/approvals/{second['id']}", answer="once", note="it is warm")
        await watch.until("turn.ended")
        assert "it is warm" in watch.text()
        await freehold.prompt(session, 'CALL ask_owner {"question": "Sure?", "free_text": true}')
        third = (await watch.until("approval", state="pending"))["data"]
        await freehold.call("POST", f"/v1/approvals/{third['id']}", answer="reject", note="not today")
        await watch.until("turn.ended")
    assert "The user says no: not today" in watch.text()
    # An answer to a question is not also sent as a prompt.
    assert sum(event["kind"] == "turn.started" for event in await freehold.events(session)) == 3


async def test_only_the_owner_opens_a_host(freehold: RunningFreehold) -> None:
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, 'CALL request_egress {"host": "example.org", "why": "the manual"}')
        asked = await watch.until("approval", state="pending")
        assert "example.org:443" not in json.dumps((await freehold.call("GET", "/v1/egress"))["rules"])
        await freehold.call("POST", f"/v1/approvals/{asked['data']['id']}", answer="conversation")
        await watch.until("turn.ended")
    assert "The user allowed example.org:443" in watch.text()
    assert "example.org" in json.dumps((await freehold.call("GET", "/v1/egress"))["rules"])


async def test_no_rule_for_an_agents_own_tools_opens_a_host(freehold: RunningFreehold) -> None:
    """An agent names its own tool `fetch` and the host as its path. "Always" for that is not "always" for egress."""
    rules = [
        {"effect": "allow", "kind": kind, "pattern": "example.net:443", "exact": True} for kind in ("fetch", "other")
    ]
    await freehold.call("PUT", "/v1/approvals/policy", rules=rules)
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, 'CALL request_egress {"host": "example.net", "why": "the manual"}')
        asked = await watch.answer("always")
        assert (asked["data"]["kind"], asked["data"]["options"]) == (
            "host",
            ["once", "conversation", "always", "reject"],
        )
        await watch.until("turn.ended")
        (rule,) = [
            one for one in (await freehold.call("GET", "/v1/egress"))["rules"] if "example.net" in json.dumps(one)
        ]
        # The permission is a rule of egress and nothing else: when the owner removes that, the agent must ask again.
        kept = (await freehold.call("GET", "/v1/approvals/policy"))["rules"]
        assert [one["kind"] for one in kept] == ["fetch", "other"]
        assert rule["verdict"] == "allow"
    await freehold.call("PUT", "/v1/approvals/policy", rules=[])


async def test_the_log_tells_no_session_what_another_was_asked(freehold: RunningFreehold) -> None:
    other, session = await freehold.open("builtin"), await freehold.open("builtin")
    token = f"Bearer {await token_of(freehold, session)}"
    for who, words in ((other, "WRITE theirs.txt their-secret-words"), (session, "WRITE mine.txt my-own-words")):
        async with freehold.watch_new(who) as watch:
            await freehold.prompt(who, words)
            await watch.answer("once")
            await watch.until("turn.ended")
    (entry,) = [
        one["id"]
        for one in (await freehold.call("GET", "/v1/history?path=workspace/theirs.txt"))["entries"]
        if one["kind"] == "turn"
    ]
    await freehold.call("POST", "/v1/history/revert", entry=entry)
    for tool in ("history_log", "timeline_search"):
        told = await post(freehold, call(tool, limit=100), Authorization=token)
        assert "my-own-words" in told
        assert "their-secret-words" not in told
        assert other not in told


async def test_the_command_inside_does_the_same(freehold: RunningFreehold) -> None:
    """It is made from the schemas, on every agent's PATH, read-only, and uses the session's token."""
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        ask = "freehold ask-owner --question 'Really?' && touch acted.txt"
        await freehold.prompt(session, f"RUN freehold history-log --limit 3 && {ask}")
        await watch.answer("once")
        asked = await watch.answer("reject")
        assert asked["data"]["title"] == "Really?"
        await watch.until("turn.ended")
    assert not freehold.file("acted.txt").exists()
    async with Computer.connect(freehold.harness.home.computer_socket()) as computer:
        bare = await computer.run("/opt/agents/.tools/freehold history-log")
        assert (bare.exit_code, bare.stderr) == (1, b"freehold: only the agent of a session can use this command\n")
        assert (await computer.run("echo evil >> /opt/agents/.tools/freehold")).exit_code != 0
        helped = await computer.run("/opt/agents/.tools/freehold request-egress --help")
        assert b"--host HOST" in helped.stdout


async def test_calls_without_a_valid_token_name_or_arguments_are_refused(freehold: RunningFreehold) -> None:
    """No token, an invalid one, a browser, an unknown tool, arguments that are not in the schema."""
    session = await freehold.open("builtin")
    token = f"Bearer {await token_of(freehold, session)}"
    log = call("history_log")
    assert (await post(freehold, log, Authorization=token)).startswith("200 ")
    assert await post(freehold, log) == "401"
    assert await post(freehold, log, Authorization="Bearer " + "x" * 43) == "401"
    assert await post(freehold, log, Authorization=token, Origin="http://localhost:5173") == "403"
    for forged in (call("approve"), call("history_log", session="other"), call("history_log", limit="many")):
        assert '"error"' in await post(freehold, forged, Authorization=token)
    # Between turns the owner cannot be asked, so nothing is done.
    assert "can be asked only while" in await post(freehold, call("history_undo"), Authorization=token)
    await freehold.call("DELETE", f"/v1/sessions/{session}")
    assert await post(freehold, log, Authorization=token) == "401"


async def test_timeline_search_shows_nothing_of_other_sessions(freehold: RunningFreehold) -> None:
    other = await freehold.open("builtin", title="a secret plan")
    session = await freehold.open("builtin")
    token = f"Bearer {await token_of(freehold, session)}"
    found = await post(freehold, call("timeline_search", limit=100), Authorization=token)
    assert session in found
    assert other not in found
    assert "identity." not in found


async def test_the_log_does_not_tell_which_personal_documents_there_are(freehold: RunningFreehold) -> None:
    put = await freehold.http.put(
        "/v1/slots/pods/data/diary/secret.txt", content=b"words", headers={"content-type": "text/plain"}
    )
    assert put.status_code < 300, put.text

    async def is_recorded() -> bool:
        return bool((await freehold.http.get("/v1/history?path=pods/diary/secret.txt")).is_success)

    await until(is_recorded)
    session = await freehold.open("builtin")
    token = f"Bearer {await token_of(freehold, session)}"
    host = freehold.home.pods
    for known, unknown in (
        ("pods/diary/secret.txt", "pods/diary/none.txt"),
        ("pods/diary", "pods/none"),
        ("./pods/diary", "./pods/none"),
        ("//pods/diary", "//pods/none"),
        (f"{host}/diary", f"{host}/none"),
        ("\\x70ods/diary", "\\x70ods/none"),
        ("workspace/../pods/diary", "workspace/../pods/none"),
        ("pods", "none"),
    ):
        told = [await post(freehold, call("history_log", path=path), Authorization=token) for path in (known, unknown)]
        assert all('"isError": true' in one for one in told), told
        assert told[0].replace(known, "") == told[1].replace(unknown, ""), told
    for path in ("workspace", "/workspace", "home"):
        found = await post(freehold, call("history_log", path=path), Authorization=token)
        assert "begins with" not in found


async def test_an_approval_answers_one_call_only(freehold: RunningFreehold) -> None:
    """The same call again is another request: a permission for once is used up."""
    session = await freehold.open("builtin")
    again = 'CALL ask_owner {"question": "Once?"}'
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, f"{again}\n{again}")
        first = await watch.answer("once")
        second = await watch.answer("reject")
        assert first["data"]["id"] != second["data"]["id"]
        await asyncio.wait_for(watch.until("turn.ended"), 60)
    assert "says no" in watch.text()


async def test_a_trace_has_the_messages_and_no_secrets(freehold: RunningFreehold) -> None:
    """The token and the placeholder are masked, also where the agent prints them. Only the owner can read the file."""
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, "RUN printenv FREEHOLD_TOOLS_TOKEN FREEHOLD_MODEL_KEY")
        await watch.answer("once")
        ended = await watch.until("turn.ended")
        assert ended["data"]["stop_reason"] == "end_turn"
    # The owner sees the output of the command, so the test can find the two secrets there.
    shown = json.dumps([event["data"] for event in watch.events if event["kind"] == "tool"])
    secrets = set(re.findall(r"[A-Za-z0-9_-]{40,}", shown))
    assert len(secrets) == 2, shown
    folder = freehold.harness.home.root / "trace"
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


async def call_bridge(freehold: RunningFreehold, token: str, *messages: str) -> list[dict[str, Any]]:
    """The answers of `freehold mcp` inside to these lines."""
    async with Computer.connect(freehold.harness.home.computer_socket()) as computer:
        result = await computer.run(["/usr/bin/python3", "-c", BRIDGE, token, *messages])
    assert result.exit_code == 0, result.stderr
    return sorted((json.loads(line) for line in result.stdout.splitlines()), key=lambda answer: answer["id"] or 0)


async def test_an_agent_with_mcp_on_stdio_only_has_the_same_tools(freehold: RunningFreehold) -> None:
    """`freehold mcp` inside forwards requests, answers no notification, and survives a line that is not JSON."""
    token = await token_of(freehold, await freehold.open("builtin"))
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}
    heard = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    answers = await call_bridge(
        freehold, token, *map(json.dumps, (hello, heard, listing)), "{", json.dumps(call("history_log"))
    )
    assert [answer["id"] for answer in answers] == [None, 1, 2, 7]
    assert answers[0]["error"]["code"] == -32700
    assert answers[1]["result"]["serverInfo"]["name"] == "freehold"
    assert "ask_owner" in [tool["name"] for tool in answers[2]["result"]["tools"]]
    assert "content" in answers[3]["result"]
    (refused,) = await call_bridge(freehold, "made-up", json.dumps(listing))
    assert "401" in refused["error"]["message"]


async def test_an_agent_runs_code_without_asking_and_keeps_its_variables(freehold: RunningFreehold) -> None:
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.prompt(session, 'CALL run_code {"code": "x = 6 * 7"}')
        await watch.until("turn.ended")
        await freehold.prompt(session, 'CALL run_code {"code": "x + 100"}')
        await watch.until("turn.ended")
    assert "142" in watch.text()
