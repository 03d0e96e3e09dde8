"""Sessions are durable: no event is lost, no prompt is sent twice, and an agent that fails does not end its session."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.agents.session_harness import STOPPED, SessionHarness, run_harness
from tests.support.condition import DEADLINE

from freehold.agents.sessions import interrupted_turns
from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.history.calls import MarkFiles, PlanRestore, RequestAuthor, RestoreEntry

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWNER = RequestAuthor(by="owner", via="browser", sign_in="s1")


async def test_messages_are_stored_in_order_and_published_as_they_arrive(harness: SessionHarness) -> None:
    session = await harness.open()
    ended = await harness.run_turn(session, {"say": "Hel"}, {"say": "lo"})
    assert ended.data["stop_reason"] == "end_turn"
    assert harness.text_of(session) == "Hello"
    assert "".join(delta["text"] for delta in harness.watchers.deltas) == "Hello"
    published = harness.watchers.events[session]
    assert [event.seq for event in published] == list(range(1, len(published) + 1))
    stored = harness.sessions.dependencies.store.events(session)
    assert stored == published
    assert [event.kind for event in stored if event.kind != "options"] == ["turn.started", "message", "turn.ended"]
    assert ended.data["usage"] == {"input": 7, "output": 3, "cost": None}


async def test_history_is_marked_before_and_after_each_turn_and_the_turn_reports_its_changes(
    harness: SessionHarness,
) -> None:
    session = await harness.open()
    ended = await harness.run_turn(session, {"say": "x"})
    marks = [call for call in harness.keeper.calls if isinstance(call, MarkFiles)]
    assert [mark.phase for mark in marks] == ["before", "after"]
    who = marks[1].who
    assert (who.by, who.agent, who.session, who.turn) == ("agent", "actor", session, "1")
    assert ended.data["changes"]["added"] == 1


async def test_the_same_key_never_makes_a_second_turn(harness: SessionHarness) -> None:
    session = await harness.open()
    turns = await asyncio.gather(*(harness.prompt(session, {"say": "once"}, key="same") for _ in range(5)))
    assert set(turns) == {1}
    await harness.wait_ended(session, 1)
    assert await harness.prompt(session, {"say": "once"}, key="same") == 1
    await harness.run_turn(session, {"say": "!"})
    assert harness.text_of(session) == "once!"


async def test_a_prompt_that_may_have_been_sent_is_never_sent_again(harness: SessionHarness) -> None:
    """The process ends in the middle of a turn. The next process ends the turn with an error and sends nothing."""
    session = await harness.open()
    await harness.prompt(session, {"say": "began"}, {"hang": True})
    await harness.watchers.until(session, "turn.started")
    await harness.restart()
    ended = await harness.watchers.until(session, "turn.ended")
    assert ended.data["stop_reason"] == "interrupted"
    assert ended.data["error"]["code"] == "session.interrupted"
    await harness.run_turn(session, {"past": True})
    assert harness.text_of(session).count("hang") <= 1


async def test_what_an_agent_had_written_is_in_the_transcript_after_a_restart_and_only_once(
    harness: SessionHarness,
) -> None:
    """A message that was complete is stored already; the thought and the message after it were still written."""
    session = await harness.open()
    tool = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "look"}
    thought = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hmm"}}
    await harness.prompt(session, {"say": "first "}, {"update": tool}, {"update": thought}, {"say": "sec"})
    await harness.wait_ended(session, 1)
    await harness.prompt(
        session, {"say": "first "}, {"update": tool}, {"update": thought}, {"say": "sec\0"}, {"hang": 1}
    )
    await harness.watchers.until_text("sec\0")
    await harness.restart()
    ended = await harness.watchers.until(session, "turn.ended")
    assert (ended.turn, ended.data["stop_reason"]) == (2, "interrupted")
    events = harness.sessions.dependencies.store.events(session)
    said = [(one.turn, one.kind, one.data["text"]) for one in events if one.kind in ("message", "thought")]
    assert said == [
        (1, "message", "first "),
        (1, "thought", "hmm"),
        (1, "message", "sec"),
        (2, "message", "first "),
        (2, "thought", "hmm"),
        (2, "message", "sec\0"),
    ]
    await harness.restart()
    assert harness.sessions.dependencies.store.events(session) == events


@pytest.mark.parametrize("agent", ["actor", "load"])
async def test_a_session_continues_after_a_restart(harness: SessionHarness, agent: str) -> None:
    """By resume, otherwise by load. Messages that the agent replays are not stored twice."""
    session = await harness.open(agent)
    await harness.run_turn(session, {"say": "one"})
    await harness.restart()
    await harness.run_turn(session, {"past": True})
    assert "one" in harness.text_of(session)
    assert "AGAIN" not in harness.text_of(session)


async def test_an_agent_that_cannot_load_sessions_gets_the_end_of_the_transcript(harness: SessionHarness) -> None:
    session = await harness.open("plain")
    await harness.run_turn(session, {"say": "the secret word is mango"})
    await harness.restart()
    await harness.run_turn(session, {"past": True})
    assert "mango" in harness.text_of(session)
    assert "began earlier" in harness.text_of(session)


async def test_queued_prompts_survive_a_restart(harness: SessionHarness) -> None:
    session = await harness.open()
    await harness.prompt(session, {"hang": True})
    await harness.watchers.until(session, "turn.started")
    second = await harness.prompt(session, {"say": "second"}, when="queue")
    assert (await harness.watchers.until(session, "queued")).turn == second
    await harness.restart()
    await harness.wait_ended(session, second)
    assert harness.text_of(session) == "second"


async def test_a_steering_prompt_stops_the_turn_and_is_sent_before_queued_ones(harness: SessionHarness) -> None:
    session = await harness.open()
    first = await harness.prompt(session, {"hang": True})
    await harness.watchers.until(session, "turn.started")
    queued = await harness.prompt(session, {"say": "later"}, when="queue")
    steered = await harness.prompt(session, {"say": "now "}, when="steer")
    assert (await harness.wait_ended(session, first)).data["stop_reason"] == "cancelled"
    await harness.wait_ended(session, steered)
    await harness.wait_ended(session, queued)
    assert harness.text_of(session) == "now later"


async def test_cancel_stops_the_turn_and_drops_queued_prompts(harness: SessionHarness) -> None:
    session = await harness.open()
    first = await harness.prompt(session, {"hang": True})
    await harness.watchers.until(session, "turn.started")
    await harness.prompt(session, {"say": "never"}, when="queue")
    await harness.sessions.cancel(session)
    assert (await harness.wait_ended(session, first)).data["stop_reason"] == "cancelled"
    await harness.run_turn(session, {"say": "after"})
    assert harness.text_of(session) == "after"


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ({"die": 3}, "agent.ended"),
        ({"raw": "this is not JSON\n" * 50}, "agent.nonsense"),
        ({"raw": '{"a":' * 100_000 + "\n" + "{}\n" * 30}, "agent.nonsense"),
    ],
)
async def test_an_agent_that_fails_ends_its_turn_and_not_the_session(
    harness: SessionHarness, step: dict[str, object], code: str
) -> None:
    session = await harness.open()
    ended = await harness.run_turn(session, {"say": "before"}, step, {"hang": True})
    assert ended.data["stop_reason"] == "error"
    assert ended.data["error"]["code"] == code
    await harness.run_turn(session, {"say": " after"})
    assert harness.text_of(session) == "before after"


async def test_a_turn_whose_end_cannot_be_stored_ends_when_there_is_space_again(
    harness: SessionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk leaves no turn open, and does not end the other sessions."""
    store = harness.sessions.dependencies.store
    store_events, refused = store.append, 0

    def refuse_ends(*given: Any, **more: Any) -> Any:
        nonlocal refused
        if more.get("ended") and refused < 3:
            refused += 1
            raise FreeholdError("timeline.disk-full", "No space left")
        return store_events(*given, **more)

    monkeypatch.setattr(interrupted_turns, "STORE_RETRY_DELAY", 0.01)
    session, other = await harness.open(), await harness.open()
    await harness.run_turn(other, {"say": "one"})
    monkeypatch.setattr(store, "append", refuse_ends)
    ended = await harness.run_turn(session, {"say": "x"})
    assert refused == 3
    assert ended.data["stop_reason"] == "interrupted"
    assert ended.data["error"]["message"] == "Freehold could not record how this turn ended"
    assert (await harness.run_turn(session, {"say": "y"})).data["stop_reason"] == "end_turn"
    assert (await harness.run_turn(other, {"say": "two"})).data["stop_reason"] == "end_turn"


async def test_the_error_of_an_agent_that_ended_has_the_end_of_its_stderr(harness: SessionHarness) -> None:
    ended = await harness.run_turn(await harness.open(), {"die": 1})
    assert "goodbye cruel world" in ended.data["error"]["message"]


@pytest.mark.parametrize(("agent", "code"), [("missing", "agent.not-started"), ("newer", "agent.wrong-version")])
async def test_an_agent_that_cannot_start_says_why(harness: SessionHarness, agent: str, code: str) -> None:
    session = await harness.open(agent)
    ended = await harness.run_turn(session, {"say": "x"})
    assert ended.data["error"]["code"] == code
    assert (await harness.sessions.get(session)).status == "failed"


async def test_a_megabyte_on_stderr_does_not_block_the_agent(harness: SessionHarness) -> None:
    session = await harness.open()
    await harness.run_turn(session, {"stderr": 1_000_000}, {"say": "alive"})
    assert harness.text_of(session) == "alive"


async def test_many_chunks_become_one_message_and_its_deltas_have_the_same_text(harness: SessionHarness) -> None:
    session = await harness.open()
    await harness.run_turn(session, {"flood": 20_000})
    assert harness.text_of(session) == "".join(f"{number} " for number in range(20_000))
    assert "".join(delta["text"] for delta in harness.watchers.deltas) == harness.text_of(session)


async def test_an_update_of_an_unknown_kind_is_stored(harness: SessionHarness) -> None:
    session = await harness.open()
    await harness.run_turn(session, {"update": {"sessionUpdate": "brand_new", "x": 1}})
    assert (await harness.watchers.until(session, "update")).data == {"sessionUpdate": "brand_new", "x": 1}


async def test_an_idle_agent_is_stopped_and_the_next_prompt_starts_it_again(
    computer: Computer, workspace: Path, tmp_path: Path
) -> None:
    async with run_harness(computer, workspace, tmp_path / "home", idle=0.05) as harness:
        session = await harness.open()
        await harness.run_turn(session, {"say": "a"})
        runner = harness.sessions._runners.get(session)
        if runner is not None:
            await runner.stopped.wait()
        assert not [row for row in await computer.processes() if "actor.py" in " ".join(row.command)]
        await harness.run_turn(session, {"say": "b"})
        assert harness.text_of(session) == "ab"


@pytest.mark.parametrize("busy", [False, True])
async def test_a_prompt_right_after_the_kill_switch_is_lifted_gets_a_new_agent(
    harness: SessionHarness, busy: bool
) -> None:
    """The stopped agent may still be ending then, and must not take the prompt."""
    session = await harness.open()
    await harness.run_turn(session, {"say": "a"})
    if busy:
        await harness.prompt(session, {"hang": True})
        await harness.watchers.until(session, "turn.started", 2)
    harness.models.stopped = STOPPED
    await harness.sessions.stop_all("enough")
    harness.models.stopped = None
    ended = await harness.run_turn(session, {"say": "b"})
    assert ended.data.get("error") is None
    assert harness.text_of(session) == "ab"


async def test_the_kill_switch_ends_every_agent_and_drops_queued_prompts(harness: SessionHarness) -> None:
    sessions = [await harness.open() for _ in range(3)]
    for session in sessions:
        await harness.prompt(session, {"hang": "deaf"})
        await harness.watchers.until(session, "turn.started")
        await harness.prompt(session, {"say": "never"}, when="queue")
    async with asyncio.timeout(DEADLINE):
        await harness.sessions.stop_all("enough")
        for session in sessions:
            ended = await harness.watchers.until(session, "turn.ended")
            assert ended.data["error"]["code"] == "agent.stopped"
    harness.models.stopped = STOPPED
    with pytest.raises(FreeholdError, match="kill switch"):
        await harness.prompt(sessions[0], {"say": "never"})
    assert harness.text_of(sessions[0]) == ""


async def test_rename_archive_search_fork_export_and_delete(harness: SessionHarness) -> None:
    from freehold.agents.sessions.export import export_markdown

    session = await harness.open()
    await harness.run_turn(session, {"say": "pineapples ```are``` 100% good"})
    store = harness.sessions.dependencies.store
    assert [row.id for row in store.search(query="100% goo")] == [session]
    assert store.search(query="1_0") == []
    await harness.sessions.update(session, title="Fruit", archived=None, who="owner")
    forked = await harness.sessions.fork(session, who="owner")
    assert forked.parent == session
    assert [event.kind for event in store.events(forked.id)] == [event.kind for event in store.events(session)]
    row = await harness.sessions.get(session)
    text = b"".join(export_markdown(row, lambda: store.iterate_events(session, row.seq))).decode()
    assert text.startswith("# Fruit\n")
    assert "pineapples" in text
    await harness.sessions.update(session, title=None, archived=True, who="owner")
    assert [row.id for row in store.search(archived=True)] == [session]
    with pytest.raises(FreeholdError, match="archived"):
        await harness.prompt(session, {"say": "x"})
    await harness.sessions.delete(session, who="owner")
    with pytest.raises(FreeholdError, match="no session"):
        await harness.sessions.get(session)
    assert [row.id for row in store.search()] == [forked.id]


async def test_rewind_takes_back_the_transcript_the_files_or_both(harness: SessionHarness) -> None:
    session = await harness.open()
    await harness.run_turn(session, {"say": "one "})
    second = await harness.run_turn(session, {"say": "two"})
    preview = await harness.sessions.rewind(session, 2, "both", dry_run=True, who="owner", author=OWNER)
    assert preview["events"] > 0
    planned = harness.keeper.calls[-1]
    assert isinstance(planned, PlanRestore)
    assert second in harness.sessions.dependencies.store.events(session)
    await harness.sessions.rewind(session, 2, "both", dry_run=False, who="owner", author=OWNER)
    kept = harness.sessions.dependencies.store.events(session)
    assert [event.data["text"] for event in kept if event.kind == "message"] == ["one "]
    restored = [call for call in harness.keeper.calls if isinstance(call, RestoreEntry)]
    assert [(call.entry, call.who) for call in restored] == [(planned.entry, OWNER)]
    await harness.run_turn(session, {"past": True})
    assert "two" not in harness.text_of(session).rpartition("began earlier")[2]


async def test_a_rewind_whose_files_are_cancelled_leaves_the_transcript_as_well(
    harness: SessionHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await harness.open()
    await harness.run_turn(session, {"say": "one"})
    before = harness.sessions.dependencies.store.events(session)

    def cancel(call: object) -> None:
        raise FreeholdError("history.cancelled", "The restore was cancelled. Nothing was changed")

    monkeypatch.setattr(harness.keeper, "service", cancel)
    with pytest.raises(FreeholdError, match="Nothing was changed"):
        await harness.sessions.rewind(session, 1, "both", dry_run=False, who="owner", author=OWNER, restore_id="mine")
    asked = harness.keeper.calls[-1]
    assert isinstance(asked, RestoreEntry)
    assert asked.restore_id == "mine"
    assert harness.sessions.dependencies.store.events(session) == before


async def test_a_prompt_can_name_only_files_inside_the_computers_folders(harness: SessionHarness) -> None:
    session = await harness.open()
    with pytest.raises(FreeholdError, match="neither below"):
        await harness.prompt(session, {"say": "x"}, files=["../etc/passwd"])
    await harness.run_turn(session, {"say": "ok"}, files=["actor.py"])


async def test_images_for_an_agent_without_image_support_fail_the_turn(harness: SessionHarness) -> None:
    image = {"mime": "image/png", "data": "aGk="}
    ended = await harness.run_turn(await harness.open("plain"), {"say": "x"}, images=[image])
    assert ended.data["error"]["code"] == "agent.no-images"
    assert (await harness.run_turn(await harness.open(), {"say": "x"}, images=[image])).data[
        "stop_reason"
    ] == "end_turn"


async def test_an_option_is_set_and_stays_set_after_a_restart(harness: SessionHarness) -> None:
    session = await harness.open()
    await harness.sessions.set_option(session, "mode", "plan")
    await harness.watchers.until(session, "options", mode="plan")
    await harness.restart()
    await harness.run_turn(session, {"say": "x"})
    await harness.watchers.until(session, "options", mode="plan")
    with pytest.raises(FreeholdError, match="not known to ask"):
        await harness.sessions.set_option(session, "mode", "yolo")
    with pytest.raises(FreeholdError, match="does not offer"):
        await harness.sessions.set_option(session, "mode", "unheard-of")


async def test_another_model_is_chosen_between_two_turns_and_the_conversation_goes_on(harness: SessionHarness) -> None:
    session = await harness.open()
    await harness.run_turn(session, {"say": "one"})
    row = await harness.sessions.choose_model(session, None, "other-model", who="owner")
    assert (row.agent, row.model) == ("actor", "other-model")
    await harness.run_turn(session, {"say": " two"})
    assert harness.text_of(session) == "one two"
    assert (await harness.sessions.choose_model(session, None, None, who="owner")).model is None
    await harness.prompt(session, {"say": " three"}, {"hang": True})
    await harness.watchers.until(session, "turn.started", 3)
    with pytest.raises(FreeholdError) as refused:
        await harness.sessions.choose_model(session, None, "third-model", who="owner")
    assert refused.value.code == "session.conflict"
    await harness.sessions.cancel(session)
    await harness.wait_ended(session, 3)


async def test_the_agent_of_a_session_is_chosen_before_its_first_prompt_only(harness: SessionHarness) -> None:
    session = await harness.open("load")
    assert (await harness.sessions.choose_model(session, "actor", None, who="owner")).agent == "actor"
    with pytest.raises(FreeholdError) as refused:
        await harness.sessions.choose_model(session, "nobody", None, who="owner")
    assert refused.value.code == "agent.not-found"
    ended = await harness.run_turn(session, {"say": "x"})
    assert ended.data["stop_reason"] == "end_turn"
    with pytest.raises(FreeholdError, match="has begun with the agent actor"):
        await harness.sessions.choose_model(session, "load", None, who="owner")


async def test_a_session_is_unread_until_the_owner_has_read_it(harness: SessionHarness) -> None:
    """For all clients at once. A number above the last event does not mark later events as read."""
    session = await harness.open()
    assert (await harness.sessions.get(session)).unread is False
    ended = await harness.run_turn(session, {"say": "news"})
    row = await harness.sessions.get(session)
    assert row.unread is True
    assert row.as_json()["unread"] is True
    assert (await harness.sessions.mark_seen(session, 1)).unread is True
    assert (await harness.sessions.mark_seen(session, 10_000)).unread is False
    assert harness.watchers.rows[-1].unread is False
    assert (await harness.sessions.mark_seen(session, ended.seq)).unread is False
    forked = await harness.sessions.fork(session, who="owner")
    assert forked.unread is False
    await harness.prompt(session, {"run": "true"})
    await harness.watchers.until(session, "approval", state="pending")
    assert (await harness.sessions.get(session)).unread is True
    await harness.restart()
    assert (await harness.sessions.get(session)).unread is True


async def test_a_database_without_read_marks_is_migrated(tmp_path: Path) -> None:
    from freehold.agents.sessions.schema import SCHEMA
    from freehold.agents.sessions.store import SessionStore
    from freehold.timeline import Timeline

    with Timeline(tmp_path / "timeline.db") as timeline:
        timeline.ensure_schema("agents", SCHEMA[0])
        with timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO agents_session (id, title, named, agent, status, created, updated, seq) "
                "VALUES ('old', 'Old', 1, 'actor', 'idle', '', '', 7)"
            )
        store = SessionStore(timeline)
        store.prepare()
        assert store.get("old").unread is False


async def test_a_turn_that_failed_because_a_provider_is_unreachable_says_so(harness: SessionHarness) -> None:
    """A turn that ended well in spite of it has no error."""
    session = await harness.open()
    harness.models.block = FreeholdError(
        "models.unreachable", "The model provider near cannot be reached", hint="base_url"
    )
    ended = await harness.run_turn(session, {"fail": "The model near answered 502"})
    assert (ended.data["error"]["code"], ended.data["error"]["hint"]) == ("models.unreachable", "base_url")
    assert "error" not in (await harness.run_turn(session, {"say": "done all the same"})).data
    harness.models.block = None
    ended = await harness.run_turn(session, {"fail": "The model near answered 500"})
    assert ended.data["error"]["message"] == "The agent reported an error: The model near answered 500"


@pytest.mark.parametrize("step", [{"say": "I am done"}, {"fail": "Internal error"}])
async def test_a_reached_budget_is_the_reason_of_the_turn_whatever_the_agent_says(
    harness: SessionHarness, step: dict[str, object]
) -> None:
    """The session fails with the reason that the owner can act on."""
    session = await harness.open()
    harness.models.block = FreeholdError("models.budget-reached", "The owner's budget is reached", hint="Lift it")
    ended = await harness.run_turn(session, step)
    assert ended.data["error"]["code"] == "models.budget-reached"
    assert (await harness.watchers.until(session, "error")).data["hint"] == "Lift it"
    assert (await harness.sessions.get(session)).status == "failed"
    harness.models.block = None
    assert "error" not in (await harness.run_turn(session, {"say": "on"})).data


async def test_a_session_is_forked_by_its_agent_even_if_it_is_not_running(harness: SessionHarness) -> None:
    """The copy has everything that the agent remembers, and the two sessions are independent."""
    session = await harness.open()
    await harness.run_turn(session, {"say": "one"})
    await harness.restart()
    forked = (await harness.sessions.fork(session, who="owner")).id
    await harness.run_turn(forked, {"say": "two"})
    await harness.run_turn(forked, {"past": True})
    assert "began earlier" not in harness.text_of(forked)
    assert '\\"one\\"' in harness.text_of(forked)
    await harness.run_turn(session, {"past": True})
    assert '\\"two\\"' not in harness.text_of(session)


async def test_a_fork_gets_the_transcript_when_the_agent_cannot_fork(harness: SessionHarness) -> None:
    session = await harness.open("plain")
    await harness.run_turn(session, {"say": "the secret word is mango"})
    await harness.restart()
    forked = (await harness.sessions.fork(session, who="owner")).id
    await harness.run_turn(forked, {"past": True})
    assert "mango" in harness.text_of(forked)


async def test_an_owner_command_runs_without_the_agent(harness: SessionHarness, computer: Computer) -> None:
    """No agent is started, nothing is asked, and the output is the message of the turn."""
    session = await harness.open("missing")
    turn = await harness.prompt(session, text="!echo out; echo err >&2; exit 3")
    ended = await harness.wait_ended(session, turn)
    assert ended.data["stop_reason"] == "end_turn"
    assert harness.text_of(session) == "````\nout\nerr\n\n[exit code 3]\n````"
    tool = await harness.watchers.until(session, "tool", status="failed")
    assert tool.data["raw_input"] == {"command": "echo out; echo err >&2; exit 3"}
    assert (await harness.sessions.get(session)).status == "idle"
    other = await harness.open()
    await harness.run_turn(other, {"say": "words "})
    await harness.wait_ended(other, await harness.prompt(other, text="!pwd"))
    await harness.run_turn(other, {"past": True})
    assert "/workspace" in harness.text_of(other)
    assert "!pwd" not in harness.text_of(other)


@pytest.mark.parametrize("way", ["cancel", "kill switch"])
async def test_an_owner_command_can_be_stopped_like_a_turn(
    harness: SessionHarness, computer: Computer, way: str
) -> None:
    session = await harness.open("missing")
    turn = await harness.prompt(session, text="!echo begun; sleep 4711")
    await harness.watchers.until_text("begun")
    await (harness.sessions.cancel(session) if way == "cancel" else harness.sessions.stop_all("enough"))
    ended = await harness.wait_ended(session, turn)
    assert ended.data["stop_reason"] == "cancelled"
    assert not [row for row in await computer.processes() if "4711" in " ".join(row.command)]
