"""A hostile agent asks for less than it does, and changes what it asked for. The owner sees all of it, or is told."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.security.hostile_session import HostileHarness, HostileSession, run_hostile_harness, tool_call

from freehold.agents.sessions.approval_store import ApprovalRow
from freehold.agents.sessions.permission_rules import PermissionRule
from freehold.computer import Computer
from freehold.errors import FreeholdError

pytestmark = pytest.mark.asyncio(loop_scope="module")

FOLDER_RULE = PermissionRule("allow", "edit", "/workspace/*")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Computer, Path]]:
    workspace = tmp_path_factory.mktemp("workspace")
    async with Computer.start(workspace=workspace) as computer:
        yield computer, workspace


@pytest_asyncio.fixture(loop_scope="module")
async def hostile(place: tuple[Computer, Path], tmp_path: Path) -> AsyncIterator[HostileHarness]:
    async with run_hostile_harness(*place, tmp_path / "home") as harness:
        yield harness


@pytest_asyncio.fixture(loop_scope="module")
async def session(hostile: HostileHarness) -> HostileSession:
    return await hostile.open()


def diff(path: str, new: str = "x\n", old: str | None = None) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def text(words: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": words}}


def set_rules(session: HostileSession, *rules: PermissionRule) -> None:
    session.harness.sessions.dependencies.approvals.rules.replace(list(rules), who="owner")


def shown(approval: ApprovalRow) -> str:
    """Everything that the owner can read of it."""
    return json.dumps(approval.as_json(), ensure_ascii=False)


def part(approval: ApprovalRow, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in approval.as_json()["parts"] if one["kind"] == kind)
    return found


# What is shown


async def test_every_diff_is_shown_and_counts_for_a_rule(session: HostileSession) -> None:
    """Of 51 diffs the last one is the hook. No rule for the folder lets it pass, and it is on top."""
    set_rules(session, FOLDER_RULE)
    paths = [*(f"/workspace/src/f{number}.py" for number in range(50)), "/workspace/.git/hooks/pre-commit"]
    asked = await session.ask(tool_call(kind="edit", title="Tidy up", content=[diff(path) for path in paths]))
    body = asked.as_json()
    assert {one["path"] for one in body["parts"] if one["kind"] == "diff"} == set(paths)
    assert body["parts"][0]["path"] == paths[-1]
    assert (body["runs_by_itself"], body["complete"]) == (True, True)
    assert body["options"] == ["once", "reject"]
    await session.stop()


async def test_a_rule_for_the_folder_covers_ordinary_files(session: HostileSession) -> None:
    set_rules(session, FOLDER_RULE)
    paths = [f"/workspace/src/f{number}.py" for number in range(51)]
    await session.play(tool_call(kind="edit", title="Edit", content=[diff(path) for path in paths]))
    assert session.said == "[yes]\n"
    assert session.asked == 0


async def test_a_change_behind_a_long_common_begin_is_visible(session: HostileSession) -> None:
    """Both texts begin with the same 150,000 characters, in one line and in many."""
    for same in ("s" * 150_000, "same line\n" * 15_000):
        asked = await session.ask(
            tool_call(kind="edit", title="Edit", content=[diff("/workspace/a", f"{same}EVIL", f"{same}good")])
        )
        found, body = part(asked, "diff"), asked.as_json()
        assert found["new"].endswith("EVIL")
        assert found["old"].endswith("good")
        assert body["complete"] is False
        assert body["hidden_bytes"] == found["hidden_bytes"] > 100_000
        assert body["options"] == ["once", "reject"]
        await session.stop()


async def test_the_end_of_a_long_command_is_shown_or_its_absence_is_told(session: HostileSession) -> None:
    asked = await session.ask(
        tool_call(kind="execute", title="ls", rawInput={"command": "ls " + "a" * 40_000 + "; rm -rf /workspace"})
    )
    assert part(asked, "command")["text"].endswith("; rm -rf /workspace")
    assert asked.as_json()["complete"]
    await session.stop()
    asked = await session.ask(
        tool_call(kind="execute", title="ls", rawInput={"command": "ls " + "a" * 400_000 + "; rm -rf /"})
    )
    body = asked.as_json()
    assert (body["complete"], body["options"]) == (False, ["once", "reject"])
    assert body["hidden_bytes"] >= 300_000
    with pytest.raises(FreeholdError, match="cannot be answered"):
        await session.answer(asked, "always")
    await session.stop()


@pytest.mark.parametrize(
    "hidden",
    [
        {"kind": "execute", "rawInput": {"command": "make", "env": {"MAKEFLAGS": "SECRET"}}},
        {"kind": "execute", "rawInput": {"command": "make", "stdin": "SECRET"}},
        {"kind": "execute", "rawInput": {"command": "make", "cwd": "/workspace/SECRET"}},
        {"kind": "execute", "rawInput": {"command": "make", "args": ["SECRET"]}},
        {"kind": "execute", "rawInput": {"command": "make", "sandbox": "SECRET"}},
        {"kind": "execute", "rawInput": {"command": ["make", "SECRET"]}},
        {"kind": "execute", "rawInput": {"cmd": "make", "command": 3, "shell": "SECRET"}},
        {"kind": "execute", "rawInput": ["make", "SECRET"]},
        {"kind": "execute", "rawInput": "SECRET"},
        {"rawInput": {"command": "make"}, "_meta": {"really": "SECRET"}},
        {"rawInput": {"command": "make"}, "unknownField": "SECRET"},
        {"rawInput": {"command": "make"}, "locations": [{"path": "/workspace/SECRET"}]},
        {"rawInput": {"command": "make"}, "locations": "SECRET"},
        {"rawInput": {"command": "make"}, "kind": "SECRET"},
        {"rawInput": {"command": "make"}, "title": ["SECRET"]},
        {"title": "x" * 700 + "SECRET"},
        {"title": "Bash", "content": [text("SECRET")]},
        {"title": "Bash", "content": [{"type": "content", "content": {"type": "resource", "resource": {"text": "SECRET"}}}]},
        {"title": "Bash", "content": [{"type": "content", "content": {"type": "resource_link", "uri": "SECRET"}}]},
        {"title": "Bash", "content": [{"type": "terminal", "terminalId": "SECRET"}]},
        {"title": "Bash", "content": [{"type": "SECRET"}]},
        {"title": "Bash", "content": ["SECRET"]},
        {"title": "Bash", "content": "SECRET"},
        {"title": "Bash", "content": [{**diff("/workspace/a"), "mode": "SECRET"}]},
        {"params": {"options": [{"optionId": "yes", "name": "SECRET", "kind": "allow_once"}]}},
        {"params": {"_meta": {"x": "SECRET"}}},
        {"params": {"beside": "SECRET"}},
        {"content": [{**diff("/workspace/a"), "newText": ["SECRET"]}]},
        {"content": [{**diff("/workspace/a"), "newText": {"run": "SECRET"}}]},
        {"content": [{**diff("/workspace/a"), "oldText": ["SECRET"]}]},
        {"content": [{**text("hi"), "run": "SECRET"}]},
        {"content": [{"type": "content", "content": {"type": {"run": "SECRET"}, "text": "hi"}}]},
        {"locations": [{"path": "/workspace/a", "line": "SECRET"}]},
        {"sessionUpdate": "tool_call_update", "_meta": {"really": "SECRET"}},
        {"sessionUpdate": "SECRET"},
        {"rawOutput": {"run": "SECRET"}},
        {"status": {"run": "SECRET"}},
        {"params": {"options": [{"optionId": "a", "name": "Yes", "kind": "allow_once", "_meta": {"run": "SECRET"}}]}},
        {"params": {"options": [{"optionId": "a", "name": "Yes", "kind": "allow_once", "description": "SECRET"}]}},
        {"params": {"options": [{"optionId": "a", "name": ["SECRET"], "kind": "allow_once"}]}},
        {"params": {"options": ["SECRET"]}},
        {"params": {"options": "SECRET"}},
    ],
    ids=lambda given: "-".join(f"{name}" for name in given),
)  # fmt: skip
async def test_everything_that_a_request_carries_is_shown(session: HostileSession, hidden: dict[str, Any]) -> None:
    asked = await session.ask(tool_call(**hidden))
    assert "SECRET" in shown(asked)
    assert asked.as_json()["complete"]
    await session.stop()


@pytest.mark.parametrize(
    "odd",
    [
        {"content": [{**diff("/workspace/a"), "newText": ["EVIL"]}]},
        {"content": [{**diff("/workspace/a"), "run": "EVIL"}]},
        {"content": [diff("/workspace/a"), {**text("hi"), "run": "EVIL"}]},
        {"params": {"options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once", "_meta": {"run": "EVIL"}}]}},
    ],
    ids=["new text is a list", "a key beside a change", "a key beside a text", "a key of an answer"],
)  # fmt: skip
async def test_no_rule_covers_content_that_has_no_known_form(session: HostileSession, odd: dict[str, Any]) -> None:
    set_rules(session, FOLDER_RULE)
    asked = await session.ask(tool_call(**{"kind": "edit", "content": [diff("/workspace/a")], **odd}))
    assert "EVIL" in shown(asked)
    assert asked.as_json()["options"] == ["once", "reject"]
    await session.stop()


async def test_a_change_that_cannot_be_drawn_still_names_its_file(session: HostileSession) -> None:
    asked = await session.ask(
        tool_call(kind="edit", content=[{**diff("/workspace/.git/hooks/pre-commit"), "newText": ["x"]}])
    )
    assert part(asked, "path")["runs_by_itself"]
    await session.stop()


async def test_other_answers_of_the_agent_make_another_request(session: HostileSession) -> None:
    digests = set()
    for name in ("Yes", "Yes, and run it as root"):
        options = [{"optionId": "yes", "name": name, "kind": "allow_once"}]
        asked = await session.ask(tool_call(kind="execute", rawInput={"command": "id"}, params={"options": options}))
        digests.add(asked.digest)
        await session.stop()
    assert len(digests) == 2


async def test_a_question_without_command_or_path_says_so_and_is_never_answered_always(session: HostileSession) -> None:
    """Kimi's requests: the input says only which tool it is, and the command is in the text."""
    shape = {"kind": "execute", "title": "Bash", "rawInput": {"input": "Bash"}, "content": [text("rm -rf /workspace")]}
    asked = await session.ask(tool_call(**shape))
    body = asked.as_json()
    assert body["names_nothing"]
    assert [one["text"] for one in body["parts"] if one["kind"] == "text"] == ["Bash", "rm -rf /workspace"]
    assert body["options"] == ["once", "reject"]
    for lasting in ("always", "conversation"):
        with pytest.raises(FreeholdError, match="cannot be answered"):
            await session.answer(asked, lasting)
    await session.answer(asked, "reject")
    named = await session.ask(tool_call(kind="execute", title="Bash", rawInput={"command": "id"}))
    assert not named.as_json()["names_nothing"]
    await session.stop()


async def test_the_owner_sees_which_of_the_agents_own_answers_is_sent(session: HostileSession) -> None:
    options = [
        {"optionId": "a", "name": "Allow, and never ask again", "kind": "allow_once"},
        {"optionId": "b", "name": "Allow", "kind": "allow_once"},
        {"optionId": "c", "name": "No", "kind": "reject_once"},
    ]
    asked = await session.ask(tool_call(kind="execute", rawInput={"command": "id"}, params={"options": options}))
    assert [(one["name"], one["sent_for"]) for one in asked.as_json()["agent_options"]] == [
        ("Allow, and never ask again", "allow"),
        ("Allow", None),
        ("No", "reject"),
    ]
    await session.stop()


async def test_equal_old_and_new_texts_are_pointed_out(session: HostileSession) -> None:
    asked = await session.ask(tool_call(kind="edit", content=[diff("/workspace/a", "evil", "evil")]))
    assert part(asked, "diff")["warning"] == "Old and new text are the same"
    await session.stop()


# What is approved


@pytest.mark.parametrize(
    "changed",
    [
        {"rawInput": {"command": "make", "cwd": "/workspace/evil"}},
        {"rawInput": {"command": "make", "env": {"A": "evil"}}},
        {"rawInput": {"command": "make", "stdin": "evil"}},
        {"rawInput": {"command": "make", "args": ["evil"]}},
        {"rawInput": {"command": "make", "sandbox": "evil"}},
        {"locations": [{"path": "/workspace/evil"}]},
        {"content": [diff("/workspace/evil")]},
        {"content": [text("evil")]},
        {"title": "evil"},
        {"kind": "edit"},
    ],
    ids=lambda given: json.dumps(given)[:50],
)
async def test_a_yes_does_not_count_for_a_call_that_changed_in_any_part(
    session: HostileSession, changed: dict[str, Any]
) -> None:
    change = {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1", **changed}}
    told = {"say": "changed"}
    first = await session.ask(
        tool_call(kind="execute", title="make", rawInput={"command": "make"}, during=[change, told])
    )
    await session.harness.watchers.until_text("changed")
    await session.answer(first, "once")
    second = await session.wait_asked()
    assert second.as_json()["asked_again"]
    assert second.digest != first.digest
    await session.answer(second, "reject")


async def test_what_was_said_of_a_call_before_the_request_is_not_taken_back_by_leaving_it_out(
    session: HostileSession,
) -> None:
    before = {
        "sessionUpdate": "tool_call",
        "toolCallId": "t1",
        "rawInput": {"command": "make", "cwd": "/workspace/evil"},
        "locations": [{"path": "/etc/passwd"}],
    }
    set_rules(session, PermissionRule("allow", "execute", "make", exact=True))
    asked = await session.ask({"update": before}, tool_call(kind="execute", rawInput={"command": "make"}, locations=[]))
    assert part(asked, "folder")["text"] == "/workspace/evil"
    assert part(asked, "path")["path"] == "/etc/passwd"
    await session.stop()


async def test_a_file_is_not_taken_back_by_naming_many_others(session: HostileSession) -> None:
    """Neither a location after more than fifty of them, nor a change."""
    set_rules(session, FOLDER_RULE)
    update = {"sessionUpdate": "tool_call", "toolCallId": "t1", "kind": "edit"}
    located = [{"path": "/workspace/.envrc"}, *({"path": f"/workspace/f{number}"} for number in range(60))]
    for said in ({"locations": located}, {"content": [diff("/workspace/.envrc")]}):
        asked = await session.ask(
            {"update": {**update, **said}},
            tool_call(locations=[{"path": "/workspace/ok"}], content=[diff("/workspace/ok")]),
        )
        body = asked.as_json()
        assert "/workspace/.envrc" in {one["path"] for one in body["parts"]}
        assert (body["runs_by_itself"], body["options"]) == (True, ["once", "reject"])
        await session.stop()


async def test_a_call_that_names_paths_without_end_ends_the_agent(session: HostileSession) -> None:
    updates = [
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "t1",
            "locations": [{"path": f"/workspace/{number}-{place}"} for place in range(6_000)],
        }
        for number in range(2)
    ]
    ended = await session.play(*({"update": update} for update in updates), {"hang": True})
    assert ended["error"]["code"] == "agent.too-large"


async def test_a_change_at_the_end_of_a_long_diff_makes_another_request(session: HostileSession) -> None:
    """The parts that do not fit on the page are approved by the digest as well."""
    long = "x" * 900_000
    change = {
        "update": {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "t1",
            "content": [diff("/workspace/a", f"{long}evil")],
        }
    }
    first = await session.ask(
        tool_call(kind="edit", content=[diff("/workspace/a", f"{long}good")], during=[change, {"say": "changed"}])
    )
    await session.harness.watchers.until_text("changed")
    await session.answer(first, "once")
    assert (await session.wait_asked()).as_json()["asked_again"]
    await session.stop()


async def test_a_call_that_changed_cannot_hide_behind_many_others(
    session: HostileSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that waits is never forgotten, however many others there are."""
    monkeypatch.setattr("freehold.agents.sessions.transcript.MAX_TOOL_CALLS", 5)
    others = [{"update": {"sessionUpdate": "tool_call", "toolCallId": f"o{number}"}} for number in range(10)]
    change = {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "rawInput": {"command": "evil"}}}
    first = await session.ask(
        tool_call(kind="execute", rawInput={"command": "make"}, during=[*others, change, {"say": "changed"}])
    )
    await session.harness.watchers.until_text("changed")
    await session.answer(first, "once")
    assert part(await session.wait_asked(), "command")["text"] == "evil"
    await session.stop()


@pytest.mark.parametrize(
    "after",
    [
        {"command": "evil"},
        {"command": "make", "cwd": "/tmp"},
        {"command": "make", "cwd": "/workspace/a/.."},
        {"cwd": "/tmp"},
        {"command": "make", "env": {"A": "b"}},
        {"command": "make", "stdin": "x"},
        {"command": "make", "script": "x"},
        {"path": "/workspace/.git/config"},
    ],
    ids=lambda given: json.dumps(given),
)
async def test_an_agent_that_changes_the_call_after_the_yes_is_ended(
    session: HostileSession, after: dict[str, Any]
) -> None:
    change = {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "rawInput": after}}
    asking = tool_call(kind="execute", rawInput={"command": "make"}, yes=[change, {"hang": True}])
    turn = await session.prompt(asking)
    await session.answer(await session.wait_asked(), "once")
    ended = await session.harness.wait_ended(session.id, turn)
    assert ended.data["error"]["code"] == "approval.changed"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"command": "make", "cwd": "/workspace/a"}, {"command": "make"}),
        ({"path": "/workspace/a", "content": "good"}, {"path": "/workspace/a", "content": "evil"}),
        ({"code": "good"}, {"code": "evil"}),
        ({"path": "/workspace/a"}, {"path": "/workspace/a", "script": "evil"}),
        ({"url": "https://good.example"}, {"url": "https://evil.example"}),
        ({"path": "a", "cwd": "/workspace/a"}, {"path": "a", "cwd": "/workspace/b"}),
        ("good", "evil"),
    ],
    ids=json.dumps,
)
async def test_an_agent_that_changes_any_input_after_the_yes_is_ended(
    session: HostileSession, before: Any, after: Any
) -> None:
    change = {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "rawInput": after}}
    turn = await session.prompt(tool_call(kind="other", rawInput=before, yes=[change, {"hang": True}]))
    await session.answer(await session.wait_asked(), "once")
    ended = await session.harness.wait_ended(session.id, turn)
    assert ended.data["error"]["code"] == "approval.changed"


async def test_an_agent_may_report_the_same_input_again_or_in_other_words(session: HostileSession) -> None:
    """A part of it, a note, or the texts of a change that was shown as a change only."""
    asked = {"file_path": "/workspace/a", "limit": 3, "description": "Look"}
    later: list[dict[str, Any]] = [
        asked,
        {},
        {"file_path": "/workspace/a", "description": "Look again"},
        {"file_path": "/workspace/a", "oldString": "a", "newString": "b", "replaceAll": True},
    ]
    updates = [{"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "rawInput": one}} for one in later]
    set_rules(session, FOLDER_RULE)
    ended = await session.play(tool_call(kind="edit", rawInput=asked, yes=[*updates, {"say": "done"}]))
    assert "error" not in ended
    assert "done" in session.said
    assert session.asked == 0


async def test_an_agent_may_name_the_workspace_as_the_folder_of_a_command_after_the_yes(
    session: HostileSession,
) -> None:
    """As Kilo does: it asks first, and reports the call, with its folder, when a rule has answered already."""
    folders = ("/workspace", "/workspace/", "/workspace/.", ".")
    later: list[dict[str, Any]] = [
        {"cwd": "/workspace"},
        *({"command": "make", "cwd": folder} for folder in folders),
        {"command": "make"},
    ]
    updates = [{"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "rawInput": one}} for one in later]
    turn = await session.prompt(
        tool_call(kind="execute", rawInput={"command": "make"}, yes=[*updates, {"say": "done"}])
    )
    await session.answer(await session.wait_asked(), "once")
    ended = await session.harness.wait_ended(session.id, turn)
    assert "error" not in ended.data
    assert "done" in session.said


@pytest.mark.parametrize(
    "call",
    [
        {"rawInput": {"input": "*** Add File: .git/hooks/pre-commit"}},
        {"rawInput": {"patch": 'diff --git "a/\\056envrc" "b/\\056envrc"'}},
        {"rawInput": {"path": "/workspace/ok", "output": ".envrc"}},
        {"rawInput": {"file_path": "a://../.envrc"}},
        {"rawInput": {"cwd": "/workspace/repo/hooks", "file_path": "pre-commit"}},
        {"command": "rm -rf ~"},
        {"params": {"command": "rm -rf ~"}},
    ],
    ids=lambda given: json.dumps(given),
)
async def test_a_call_that_names_a_file_where_nobody_looks_is_asked(
    session: HostileSession, call: dict[str, Any]
) -> None:
    """More of these are in tests/agents/test_rule_cover.py."""
    set_rules(session, FOLDER_RULE)
    await session.ask(tool_call(kind="edit", locations=[{"path": "/workspace/ok"}], **call))
    await session.stop()


async def test_an_answer_counts_only_for_the_call_whose_digest_it_names(session: HostileSession) -> None:
    asked = await session.ask(tool_call(kind="execute", rawInput={"command": "make"}))
    with pytest.raises(FreeholdError, match="another call"):
        await session.harness.sessions.answer(asked.id, "once", who="owner", digest="0" * 64)
    await session.harness.sessions.answer(asked.id, "once", who="owner", digest=asked.as_json()["digest"])


# What a rule covers


@pytest.mark.parametrize(
    "more",
    [
        {"env": {"GIT_SSH_COMMAND": "evil"}},
        {"env": [["A", "evil"]]},
        {"stdin": "evil"},
        {"cwd": "/workspace/evil"},
        {"cwd": "evil"},
        {"args": ["; evil"]},
        {"shell": "/workspace/evil"},
        {"cmd": "evil"},
    ],
    ids=lambda given: json.dumps(given),
)
async def test_a_rule_for_a_command_does_not_cover_what_is_added_to_it(
    session: HostileSession, more: dict[str, Any]
) -> None:
    set_rules(
        session,
        PermissionRule("allow", "execute", "git status*"),
        PermissionRule("allow", "execute", "git status", exact=True),
    )
    await session.ask(tool_call(kind="execute", rawInput={"command": "git status", **more}))
    await session.stop()


async def test_a_rule_covers_a_command_with_keys_that_change_nothing(session: HostileSession) -> None:
    set_rules(session, PermissionRule("allow", "execute", "git status*"))
    given = {"command": "git status -s", "cwd": "/workspace", "description": "Look", "timeout": 5, "env": {}}
    await session.play(tool_call(kind="execute", rawInput=given))
    assert session.asked == 0


@pytest.mark.parametrize(
    ("call", "effect"),
    [
        ({"kind": "execute", "rawInput": {"command": "make"}}, "exactly this command"),
        ({"kind": "edit", "content": [diff("a.txt")]}, "every change of /workspace/a.txt, whatever its content"),
        ({"kind": "delete", "locations": [{"path": "/workspace/a.txt"}]}, "every deletion of /workspace/a.txt"),
        (
            {"kind": "delete", "locations": [{"path": f"/workspace/{n}"} for n in range(99)]},
            "every deletion of each path of this request",
        ),
    ],
)
async def test_the_owner_is_told_all_that_a_lasting_answer_allows(
    session: HostileSession, call: dict[str, Any], effect: str
) -> None:
    asked = (await session.ask(tool_call(**call))).as_json()
    assert "always" in asked["options"]
    assert asked["lasting_effect"] == effect
    await session.stop()


async def test_always_for_a_file_allows_its_next_change_as_the_owner_was_told(session: HostileSession) -> None:
    asked = await session.ask(tool_call(kind="edit", content=[diff("/workspace/a.txt", "good")]))
    await session.answer(asked, "always")
    await session.harness.watchers.until_text("[yes]")
    await session.stop()
    await session.play(tool_call(kind="edit", content=[diff("/workspace/a.txt", "other")]))
    assert session.asked == 1


async def test_a_move_is_never_allowed_for_longer_than_once(session: HostileSession) -> None:
    """Rules for both paths would also allow the way back."""
    asked = await session.ask(tool_call(kind="move", rawInput={"from": "/workspace/a", "to": "/workspace/b"}))
    assert asked.as_json()["options"] == ["once", "reject"]
    assert asked.as_json()["lasting_effect"] is None
    with pytest.raises(FreeholdError, match="cannot be answered"):
        await session.answer(asked, "always")
    await session.stop()


async def test_always_holds_for_the_command_in_its_folder_and_for_nothing_else(session: HostileSession) -> None:
    given = {"command": "make", "cwd": "/workspace/a", "env": {"B": "1"}}
    turn = await session.prompt(tool_call(kind="execute", rawInput=given))
    await session.answer(await session.wait_asked(), "always")
    await session.harness.wait_ended(session.id, turn)
    await session.play(tool_call(kind="execute", rawInput=given))
    assert session.asked == 1
    await session.ask(tool_call(kind="execute", rawInput={**given, "cwd": "/workspace/b"}))
    await session.stop()


@pytest.mark.parametrize(
    "call",
    [
        {"kind": "edit", "content": [diff("/workspace/a")], "locations": [{"path": "/etc/passwd"}]},
        {"kind": "edit", "content": [diff("/workspace/a")], "rawInput": {"file_path": "/etc/passwd"}},
        {"kind": "edit", "content": [diff("/workspace/a")], "rawInput": {"edits": [{"to": "../etc/passwd"}]}},
        {"kind": "edit", "content": [diff("/workspace/a")], "rawInput": {"changes": {"/etc/passwd": {}}}},
        {"kind": "edit", "content": [diff("/workspace/a")], "rawInput": {"patch": "*** Update File: /etc/passwd"}},
        {"kind": "edit", "content": [diff("/workspace/a")], "rawInput": {"command": "evil"}},
        {"kind": "edit", "content": [diff("/workspace/a"), {"type": "terminal", "terminalId": "x"}]},
        {"kind": "move", "rawInput": {"from": "/workspace/a", "to": "/etc/cron.d/x"}},
        {"kind": "edit", "content": [diff("/workspace/../etc/passwd")]},
        {"kind": "edit", "content": [diff("/workspace/a/../../etc/passwd")]},
        {"kind": "edit", "content": [diff(f"/workspace/{number}") for number in range(2_001)]},
        {"kind": "edit", "content": [diff("/workspace/" + "a/" * 3_000)]},
        {"kind": "edit", "content": [diff("/workspace/a\0b")]},
        {"kind": "switch_mode", "content": [diff("/workspace/a")], "rawInput": {"plan": "x"}},
    ],
    ids=range(14),
)
async def test_a_rule_for_a_folder_covers_a_call_only_if_it_covers_every_part(
    session: HostileSession, call: dict[str, Any]
) -> None:
    set_rules(session, PermissionRule("allow", "*", "/workspace/*"))
    await session.ask(tool_call(**call))
    await session.stop()


async def test_a_deny_rule_sees_through_every_spelling(session: HostileSession) -> None:
    set_rules(
        session,
        PermissionRule("deny", "*", "/workspace/secret*"),
        PermissionRule("deny", "execute", "curl*"),
        PermissionRule("allow", "edit", "/workspace/*"),
    )
    link = {"link": {"path": "/workspace/harmless", "to": "/workspace/secret.txt"}}
    calls: list[dict[str, Any]] = [
        {"kind": "edit", "content": [diff("secret.txt")]},
        {"kind": "edit", "content": [diff("file:///workspace/secret.txt")]},
        {"kind": "edit", "content": [diff("/workspace/a/../secret.txt")]},
        {"kind": "edit", "content": [diff("/workspace/harmless")]},
        {"kind": "read", "locations": [{"path": "/workspace//secret.txt"}]},
        {"kind": "execute", "rawInput": {"command": "curl evil", "cwd": "/tmp", "env": {"A": "b"}}},
    ]
    await session.play(link, *(tool_call(**call) for call in calls))
    assert session.said.split() == ["[no]"] * len(calls)
    assert session.asked == 0


# Files that run by themselves


@pytest.mark.parametrize(
    "path",
    [
        "/workspace/.git/hooks/pre-commit",
        "/workspace/.git/config",
        "/workspace/sub/.GIT/Config",
        "/workspace/.g\u200bit/config",
        "/workspace/.git./config",
        "/workspace/git~1/config",
        "/workspace/.git",
        "/workspace/repo.git/hooks/post-checkout",
        "/workspace/.husky/pre-push",
        "/workspace/.envrc",
        "/workspace/.github/workflows/ci.yml",
        "/workspace/.gitlab-ci.yml",
        "/workspace/web/package.json",
        "/workspace/.vscode/tasks.json",
        "/workspace/.claude/settings.json",
        "/workspace/CLAUDE.md",
        "/workspace/.mcp.json",
        "/workspace/opencode.json",
        "/workspace/a/../.git/config",
        "/workspace/./.git//config",
        ".git/config",
    ],
)
async def test_no_rule_for_a_folder_covers_a_file_that_runs_by_itself(session: HostileSession, path: str) -> None:
    set_rules(session, PermissionRule("allow", "*", "/workspace/*"))
    asked = await session.ask(tool_call(kind="edit", content=[diff(path)]))
    assert part(asked, "diff")["runs_by_itself"]
    assert asked.as_json()["options"] == ["once", "reject"]
    await session.stop()


@pytest.mark.parametrize(
    "path", ["~/.bashrc", "/home/agent/.config/fish/config.fish", "/home/agent/.codex/config.toml"]
)
async def test_no_rule_for_the_agents_home_covers_a_shell_profile_or_settings(
    session: HostileSession, path: str
) -> None:
    set_rules(session, PermissionRule("allow", "*", "/home/agent/*"))
    asked = await session.ask(tool_call(kind="edit", content=[diff(path)]))
    assert asked.as_json()["runs_by_itself"]
    await session.stop()


@pytest.mark.parametrize(
    "acts",
    [
        [{"link": {"path": "/workspace/notes", "to": "/workspace/.git/config"}}],
        [{"link": {"path": "/workspace/notes", "to": "/workspace/.git/config", "hard": True}}],
        [
            {"link": {"path": "/workspace/folder", "to": "/workspace/.git"}},
            {"link": {"path": "/workspace/notes", "to": "folder/config"}},
        ],
        [{"link": {"path": "/workspace/notes", "to": "/workspace/.git/not-yet"}}],
    ],
    ids=["symbolic", "hard", "through-a-folder", "dangling"],
)
async def test_a_link_to_such_a_file_is_found(session: HostileSession, acts: list[dict[str, Any]]) -> None:
    set_rules(session, FOLDER_RULE)
    begin = {"write": {"path": "/workspace/.git/config", "text": "x"}}
    asked = await session.ask(begin, *acts, tool_call(kind="edit", content=[diff("/workspace/notes")]))
    assert part(asked, "diff")["runs_by_itself"]
    await session.stop()


async def test_a_link_that_is_put_in_place_while_the_question_waits_voids_the_answer(
    session: HostileSession, place: tuple[Computer, Path]
) -> None:
    swap = {"link": {"path": "/workspace/plain", "to": "/workspace/.git/config"}}
    first = await session.ask(
        {"write": {"path": "/workspace/plain", "text": "x"}},
        tool_call(
            kind="edit",
            content=[diff("/workspace/plain")],
            during=[{"wait_file": "/workspace/go"}, swap, {"say": "swapped"}],
        ),
    )
    assert not first.as_json()["runs_by_itself"]
    (place[1] / "go").touch()
    await session.harness.watchers.until_text("swapped")
    await session.answer(first, "once")
    second = await session.wait_asked()
    assert second.as_json()["runs_by_itself"]
    assert part(second, "diff")["resolved"] == "/workspace/.git/config"
    await session.stop()


@pytest.mark.parametrize(
    "raw",
    [
        {"from": "/workspace/x", "to": "/workspace/.git/hooks/pre-commit"},
        {"source": "/workspace/x", "destination": "/workspace/.git"},
        {"from": "/workspace/x", "to": "/workspace/.github"},
        {"old_path": "/workspace/x", "new_path": ".envrc"},
    ],
    ids=lambda given: list(given.values())[1],
)
async def test_renaming_something_into_such_a_place_is_asked(session: HostileSession, raw: dict[str, Any]) -> None:
    set_rules(session, PermissionRule("allow", "*", "/workspace/*"))
    asked = await session.ask(tool_call(kind="move", title="Move", rawInput=raw))
    assert asked.as_json()["runs_by_itself"]
    await session.stop()


async def test_no_pattern_for_commands_covers_one_that_names_such_a_file(session: HostileSession) -> None:
    set_rules(session, PermissionRule("allow", "execute", "cp *"))
    for command in ("cp x .git/hooks/pre-commit", "cp x '/workspace/.git'/config", "cp --target=.envrc x"):
        asked = await session.ask(tool_call(kind="execute", rawInput={"command": command}))
        assert part(asked, "command")["runs_by_itself"]
        await session.stop()
    await session.play(tool_call(kind="execute", rawInput={"command": "cp a b"}))
    assert "[yes]" in session.said


async def test_reading_such_a_file_is_covered_by_a_rule_for_reading(session: HostileSession) -> None:
    set_rules(session, PermissionRule("allow", "read", "/workspace/*"))
    await session.play(tool_call(kind="read", locations=[{"path": "/workspace/.git/config"}]))
    assert session.asked == 0


async def test_an_agent_cannot_make_the_host_keep_calls_without_end(
    session: HostileSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.agents.sessions.transcript.MAX_KEPT", 100_000)
    asks = [
        {
            "send": {
                "id": f"z{number}",
                "method": "session/request_permission",
                "params": {"toolCall": {"toolCallId": f"z{number}", "rawInput": {"command": "x" * 9_000}}},
            }
        }
        for number in range(20)
    ]
    assert (await session.play(*asks, {"hang": True}))["error"]["code"] == "agent.too-large"


async def test_a_message_that_is_nested_too_deeply_is_refused_and_not_fatal(session: HostileSession) -> None:
    deep = "[" * 900 + "]" * 900
    update = f'{{"sessionUpdate":"tool_call","toolCallId":"d","rawInput":{deep}}}'
    line = f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}\n'
    ended = await session.play({"raw": line}, {"say": "still here"})
    assert "error" not in ended
    assert session.said == "still here\n"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
async def test_a_number_that_no_page_can_read_is_refused_and_not_fatal(session: HostileSession, number: str) -> None:
    update = f'{{"sessionUpdate":"tool_call","toolCallId":"evil","rawInput":{{"n":{number}}}}}'
    line = f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}\n'
    ended = await session.play({"raw": line}, {"say": "still here"})
    assert "error" not in ended
    assert session.said == "still here\n"
    events = session.harness.sessions.dependencies.store.events(session.id)
    assert "evil" not in json.dumps([event.as_json() for event in events if event.kind == "tool"])


async def test_a_path_that_is_no_address_is_asked_and_the_session_goes_on(session: HostileSession) -> None:
    asked = await session.ask(tool_call(kind="edit", content=[diff("file://[x")]), {"say": "still here"})
    assert part(asked, "diff")["path"] == "file://[x"
    await session.answer(asked, "reject")
    await session.harness.watchers.until_text("still here")
    await session.stop()


async def test_a_request_that_the_host_cannot_answer_is_refused_and_the_session_goes_on(
    session: HostileSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object, **more: object) -> None:
        raise RuntimeError("a bug of the host")

    monkeypatch.setattr("freehold.agents.sessions.permission_gate.build_request", fail)
    ended = await session.play(tool_call(kind="execute", rawInput={"command": "id"}), {"say": "still here"})
    assert "error" not in ended
    assert "[yes]" not in session.said
    assert session.said.endswith("still here\n")


@pytest.mark.parametrize("link", ["/proc/self/cwd", "/proc/thread-self/root", "/dev/fd/1", "/proc/1/root"])
async def test_a_link_that_leads_each_process_elsewhere_is_said_to_be_unknown(
    session: HostileSession, place: tuple[Computer, Path], link: str
) -> None:
    """Resolved by Freehold's own process it would be that process's folder, not the agent's."""
    set_rules(session, PermissionRule("allow", "edit", "/*"))
    name = link.strip("/").replace("/", "-")
    (place[1] / name).symlink_to(link)
    asked = await session.ask(tool_call(kind="edit", content=[diff(f"/workspace/{name}/x")]))
    assert part(asked, "diff")["warning"] == "Freehold could not find out where this path leads"
    assert asked.as_json()["options"] == ["once", "reject"]
    await session.stop()


async def test_half_a_character_anywhere_harms_nothing(session: HostileSession) -> None:
    """No database holds such a text: it is replaced where it comes in."""
    half = "a\ud800"
    updates = [
        {"sessionUpdate": "session_info_update", "title": half},
        {"sessionUpdate": "tool_call", "toolCallId": half, "title": half, "rawInput": {half: half}},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": half}},
        {"sessionUpdate": half, "x": half},
    ]
    asked = await session.ask(
        *({"update": update} for update in updates), tool_call(kind="execute", rawInput={"command": half})
    )
    assert "a\ufffd" in part(asked, "command")["text"]
    await session.stop()


async def test_a_turn_that_reports_absurd_usage_ends_as_usual(hostile: HostileHarness) -> None:
    session = await hostile.open(usage={"inputTokens": 10**1300, "outputTokens": 2**53})
    ended = await session.play({"say": "done"})
    assert ended["stop_reason"] == "end_turn"
    assert ended["usage"] == {"input": None, "output": 2**53, "cost": None}


async def test_a_turn_ends_for_the_owner_even_when_the_host_itself_fails(
    session: HostileSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise RuntimeError("a bug of the host")

    monkeypatch.setattr("freehold.agents.sessions.transcript.TranscriptBuilder._add_chunk", fail)
    ended = await session.play({"say": "x"}, {"hang": True})
    assert (ended["stop_reason"], ended["error"]["code"]) == ("interrupted", "session.interrupted")
    assert (await session.harness.sessions.get(session.id)).status == "failed"
