"""Sessions are durable: nothing is lost, nothing is sent twice, and whatever the agent does the session stays."""

import asyncio
from pathlib import Path

import pytest
from tests.agents.stage import Stage, staged

from freehold.computer import Computer
from freehold.errors import FreeholdError

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_what_is_said_is_kept_in_order_and_passed_on_as_it_comes(stage: Stage) -> None:
    session = await stage.open()
    ended = await stage.play(session, {"say": "Hel"}, {"say": "lo"})
    assert ended.data["stop_reason"] == "end_turn"
    assert stage.said(session) == "Hello"
    assert "".join(delta["text"] for delta in stage.audience.deltas) == "Hello"
    told = stage.audience.told[session]
    assert [event.seq for event in told] == list(range(1, len(told) + 1))
    kept = stage.room.ground.store.events(session)
    assert kept == told
    assert [event.kind for event in kept if event.kind != "options"] == ["turn.started", "message", "turn.ended"]
    assert ended.data["usage"] == {"input": 7, "output": 3, "cost": None}


async def test_each_turn_is_marked_before_and_after_and_tells_what_changed(stage: Stage) -> None:
    session = await stage.open()
    ended = await stage.play(session, {"say": "x"})
    marks = [mark for mark in stage.marks if mark["method"] == "history.mark"]
    assert [mark["phase"] for mark in marks] == ["before", "after"]
    assert marks[1]["who"] | {"prompt": ""} == {
        "by": "agent",
        "agent": "actor",
        "session": session,
        "turn": "1",
        "prompt": "",
    }
    assert ended.data["changes"]["added"] == 1


async def test_the_same_key_never_makes_a_second_turn(stage: Stage) -> None:
    session = await stage.open()
    turns = await asyncio.gather(*(stage.say(session, {"say": "once"}, key="same") for _ in range(5)))
    assert set(turns) == {1}
    await stage.ended(session, 1)
    assert await stage.say(session, {"say": "once"}, key="same") == 1
    await stage.play(session, {"say": "!"})
    assert stage.said(session) == "once!"


async def test_a_prompt_that_may_have_been_sent_is_never_sent_again(stage: Stage) -> None:
    """The process ends in the middle of a turn; the next one says so and replays nothing."""
    session = await stage.open()
    await stage.say(session, {"say": "began"}, {"hang": True})
    await stage.audience.until(session, "turn.started")
    await stage.again()
    ended = await stage.audience.until(session, "turn.ended")
    assert ended.data["stop_reason"] == "interrupted"
    assert ended.data["error"]["code"] == "session.interrupted"
    await stage.play(session, {"past": True})
    assert stage.said(session).count("hang") <= 1


@pytest.mark.parametrize("agent", ["actor", "load"])
async def test_a_session_goes_on_where_it_was_after_a_restart(stage: Stage, agent: str) -> None:
    """By resume, else by load; what the agent tells again is not kept twice."""
    session = await stage.open(agent)
    await stage.play(session, {"say": "one"})
    await stage.again()
    await stage.play(session, {"past": True})
    assert "one" in stage.said(session)
    assert "AGAIN" not in stage.said(session)


async def test_an_agent_that_remembers_nothing_is_told_the_end_of_the_conversation(stage: Stage) -> None:
    session = await stage.open("plain")
    await stage.play(session, {"say": "the secret word is mango"})
    await stage.again()
    await stage.play(session, {"past": True})
    assert "mango" in stage.said(session)
    assert "began earlier" in stage.said(session)


async def test_prompts_wait_their_turn_and_survive_a_restart(stage: Stage) -> None:
    session = await stage.open()
    await stage.say(session, {"hang": True})
    await stage.audience.until(session, "turn.started")
    second = await stage.say(session, {"say": "second"}, when="queue")
    assert (await stage.audience.until(session, "queued")).turn == second
    await stage.again()
    await stage.ended(session, second)
    assert stage.said(session) == "second"


async def test_steering_stops_the_turn_and_goes_first(stage: Stage) -> None:
    session = await stage.open()
    first = await stage.say(session, {"hang": True})
    await stage.audience.until(session, "turn.started")
    queued = await stage.say(session, {"say": "later"}, when="queue")
    steered = await stage.say(session, {"say": "now "}, when="steer")
    assert (await stage.ended(session, first)).data["stop_reason"] == "cancelled"
    await stage.ended(session, steered)
    await stage.ended(session, queued)
    assert stage.said(session) == "now later"


async def test_cancel_stops_the_turn_and_forgets_what_waits(stage: Stage) -> None:
    session = await stage.open()
    first = await stage.say(session, {"hang": True})
    await stage.audience.until(session, "turn.started")
    await stage.say(session, {"say": "never"}, when="queue")
    await stage.room.cancel(session)
    assert (await stage.ended(session, first)).data["stop_reason"] == "cancelled"
    await stage.play(session, {"say": "after"})
    assert stage.said(session) == "after"


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ({"die": 3}, "agent.ended"),
        ({"raw": "this is not JSON\n" * 50}, "agent.nonsense"),
        ({"raw": '{"a":' * 100_000 + "\n" + "{}\n" * 30}, "agent.nonsense"),
    ],
)
async def test_an_agent_that_breaks_ends_its_turn_and_not_the_session(
    stage: Stage, step: dict[str, object], code: str
) -> None:
    session = await stage.open()
    ended = await stage.play(session, {"say": "before"}, step, {"hang": True})
    assert ended.data["stop_reason"] == "error"
    assert ended.data["error"]["code"] == code
    await stage.play(session, {"say": " after"})
    assert stage.said(session) == "before after"


async def test_its_last_words_are_told_when_it_dies(stage: Stage) -> None:
    ended = await stage.play(await stage.open(), {"die": 1})
    assert "goodbye cruel world" in ended.data["error"]["message"]


@pytest.mark.parametrize(("agent", "code"), [("missing", "agent.not-started"), ("newer", "agent.wrong-version")])
async def test_an_agent_that_cannot_start_says_why(stage: Stage, agent: str, code: str) -> None:
    session = await stage.open(agent)
    ended = await stage.play(session, {"say": "x"})
    assert ended.data["error"]["code"] == code
    assert (await stage.room.get(session)).status == "failed"


async def test_a_megabyte_on_stderr_stops_nothing(stage: Stage) -> None:
    session = await stage.open()
    await stage.play(session, {"stderr": 1_000_000}, {"say": "alive"})
    assert stage.said(session) == "alive"


async def test_a_flood_becomes_one_message_and_its_deltas_are_the_same_words(stage: Stage) -> None:
    session = await stage.open()
    await stage.play(session, {"flood": 20_000})
    assert stage.said(session) == "".join(f"{number} " for number in range(20_000))
    assert "".join(delta["text"] for delta in stage.audience.deltas) == stage.said(session)


async def test_an_update_of_a_kind_we_do_not_know_is_kept(stage: Stage) -> None:
    session = await stage.open()
    await stage.play(session, {"update": {"sessionUpdate": "brand_new", "x": 1}})
    assert (await stage.audience.until(session, "update")).data == {"sessionUpdate": "brand_new", "x": 1}


async def test_an_idle_agent_is_stopped_and_brought_back_by_the_next_prompt(
    computer: Computer, workspace: Path, tmp_path: Path
) -> None:
    async with staged(computer, workspace, tmp_path / "home", idle=0.05) as stage:
        session = await stage.open()
        await stage.play(session, {"say": "a"})
        live = stage.room._lives.get(session)
        if live is not None:
            await live.over.wait()
        assert not [row for row in await computer.processes() if "actor.py" in " ".join(row.command)]
        await stage.play(session, {"say": "b"})
        assert stage.said(session) == "ab"


async def test_the_kill_switch_ends_every_agent_and_sends_nothing_more(stage: Stage) -> None:
    sessions = [await stage.open() for _ in range(3)]
    for session in sessions:
        await stage.say(session, {"hang": "deaf"})
        await stage.audience.until(session, "turn.started")
        await stage.say(session, {"say": "never"}, when="queue")
    async with asyncio.timeout(5):
        await stage.room.stop_all("enough")
        for session in sessions:
            ended = await stage.audience.until(session, "turn.ended")
            assert ended.data["error"]["code"] == "agent.stopped"
    stage.money.stopped = True
    with pytest.raises(FreeholdError, match="stopped"):
        await stage.say(sessions[0], {"say": "never"})
    assert stage.said(sessions[0]) == ""


async def test_rename_archive_search_fork_export_and_delete(stage: Stage) -> None:
    from freehold.agents.exporting import as_markdown

    session = await stage.open()
    await stage.play(session, {"say": "pineapples ```are``` 100% good"})
    store = stage.room.ground.store
    assert [row.id for row in store.search(query="00% g")] == [session]
    assert store.search(query="100_") == []
    await stage.room.change(session, title="Fruit", archived=None, who="owner")
    forked = await stage.room.fork(session, who="owner")
    assert forked.parent == session
    assert [event.kind for event in store.events(forked.id)] == [event.kind for event in store.events(session)]
    text = as_markdown(await stage.room.get(session), store.events(session))
    assert text.startswith("# Fruit\n")
    assert "pineapples" in text
    await stage.room.change(session, title=None, archived=True, who="owner")
    assert [row.id for row in store.search(archived=True)] == [session]
    with pytest.raises(FreeholdError, match="archived"):
        await stage.say(session, {"say": "x"})
    await stage.room.delete(session, who="owner")
    with pytest.raises(FreeholdError, match="no session"):
        await stage.room.get(session)
    assert [row.id for row in store.search()] == [forked.id]


async def test_rewinding_takes_back_words_files_or_both(stage: Stage) -> None:
    session = await stage.open()
    await stage.play(session, {"say": "one "})
    second = await stage.play(session, {"say": "two"})
    preview = await stage.room.rewind(session, 2, "both", dry_run=True, who="owner")
    assert preview["events"] > 0
    assert preview["files"]["asked"]["dry_run"] is True
    assert second in stage.room.ground.store.events(session)
    await stage.room.rewind(session, 2, "both", dry_run=False, who="owner")
    kept = stage.room.ground.store.events(session)
    assert [event.data["text"] for event in kept if event.kind == "message"] == ["one "]
    assert stage.marks[-1]["entry"] == preview["files"]["asked"]["entry"]
    await stage.play(session, {"past": True})
    assert "two" not in stage.said(session).rpartition("began earlier")[2]


async def test_files_are_named_inside_and_nowhere_else(stage: Stage) -> None:
    session = await stage.open()
    with pytest.raises(FreeholdError, match="neither below"):
        await stage.say(session, {"say": "x"}, files=["../etc/passwd"])
    await stage.play(session, {"say": "ok"}, files=["actor.py"])


async def test_images_are_refused_by_an_agent_that_takes_none(stage: Stage) -> None:
    image = {"mime": "image/png", "data": "aGk="}
    ended = await stage.play(await stage.open("plain"), {"say": "x"}, images=[image])
    assert ended.data["error"]["code"] == "agent.no-images"
    assert (await stage.play(await stage.open(), {"say": "x"}, images=[image])).data["stop_reason"] == "end_turn"


async def test_an_option_is_set_and_stays_set_after_a_restart(stage: Stage) -> None:
    session = await stage.open()
    await stage.room.choose(session, "mode", "plan")
    await stage.audience.until(session, "options", mode="plan")
    await stage.again()
    await stage.play(session, {"say": "x"})
    await stage.audience.until(session, "options", mode="plan")
    with pytest.raises(FreeholdError, match="without asking"):
        await stage.room.choose(session, "mode", "yolo")
    with pytest.raises(FreeholdError, match="does not offer"):
        await stage.room.choose(session, "mode", "unheard-of")


async def test_no_more_than_a_few_agents_are_kept_with_nothing_to_do(stage: Stage) -> None:
    from freehold.agents.room import MAX_IDLE

    for number in range(MAX_IDLE + 3):
        session = await stage.open()
        await stage.play(session, {"say": str(number)})
    idle = [live for live in stage.room._lives.values() if live.idle_since is not None and not live._retired]
    assert len(idle) <= MAX_IDLE + 1


async def test_what_the_owner_has_not_read_is_told_until_they_have(stage: Stage) -> None:
    """By any watcher, for all of them; numbers that were never given see nothing in advance."""
    session = await stage.open()
    assert (await stage.room.get(session)).unread is False
    ended = await stage.play(session, {"say": "news"})
    row = await stage.room.get(session)
    assert row.unread is True
    assert row.as_json()["unread"] is True
    assert (await stage.room.see(session, 1)).unread is True
    assert (await stage.room.see(session, 10_000)).unread is False
    assert stage.audience.rows[-1].unread is False
    assert (await stage.room.see(session, ended.seq)).unread is False
    forked = await stage.room.fork(session, who="owner")
    assert forked.unread is False
    await stage.say(session, {"run": "true"})
    await stage.audience.until(session, "approval", state="pending")
    assert (await stage.room.get(session)).unread is True
    await stage.again()
    assert (await stage.room.get(session)).unread is True


async def test_a_store_of_before_there_was_a_seen_number_is_taken_up(tmp_path: Path) -> None:
    from freehold.agents.schema import SCHEMA
    from freehold.agents.store import Store
    from freehold.timeline import Timeline

    with Timeline(tmp_path / "timeline.db") as timeline:
        timeline.ensure_schema("agents", SCHEMA[0])
        with timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO agents_session (id, title, named, agent, status, created, updated, seq) "
                "VALUES ('old', 'Old', 1, 'actor', 'idle', '', '', 7)"
            )
        store = Store(timeline)
        store.prepare()
        assert store.get("old").unread is False


async def test_a_model_that_is_away_is_what_an_agent_that_gave_up_is_said_to_have_met(stage: Stage) -> None:
    """One that went on without it has ended well; and an agent's own error is not called a refusal."""
    session = await stage.open()
    stage.money.block = FreeholdError(
        "models.unreachable", "The model provider near cannot be reached", hint="base_url"
    )
    ended = await stage.play(session, {"fail": "The model near answered 502"})
    assert (ended.data["error"]["code"], ended.data["error"]["hint"]) == ("models.unreachable", "base_url")
    assert "error" not in (await stage.play(session, {"say": "done all the same"})).data
    stage.money.block = None
    ended = await stage.play(session, {"fail": "The model near answered 500"})
    assert ended.data["error"]["message"] == "The agent could not go on: The model near answered 500"


@pytest.mark.parametrize("step", [{"say": "I am done"}, {"fail": "Internal error"}])
async def test_what_only_the_owner_can_change_is_told_whatever_the_agent_says(
    stage: Stage, step: dict[str, object]
) -> None:
    """A budget that is reached, a key that is missing: the session fails with that reason."""
    session = await stage.open()
    stage.money.block = FreeholdError("models.budget-reached", "The owner's budget is reached", hint="Lift it")
    ended = await stage.play(session, step)
    assert ended.data["error"]["code"] == "models.budget-reached"
    assert (await stage.audience.until(session, "error")).data["hint"] == "Lift it"
    assert (await stage.room.get(session)).status == "failed"
    stage.money.block = None
    assert "error" not in (await stage.play(session, {"say": "on"})).data


async def test_a_session_is_forked_by_its_agent_also_when_that_is_not_running(stage: Stage) -> None:
    """The whole past is there, not only the end of it that would be retold; each goes its own way from then on."""
    session = await stage.open()
    await stage.play(session, {"say": "one"})
    await stage.again()
    forked = (await stage.room.fork(session, who="owner")).id
    await stage.play(forked, {"say": "two"})
    await stage.play(forked, {"past": True})
    assert "began earlier" not in stage.said(forked)
    assert '\\"one\\"' in stage.said(forked)
    await stage.play(session, {"past": True})
    assert '\\"two\\"' not in stage.said(session)


async def test_a_fork_of_what_cannot_be_started_is_told_the_past(stage: Stage) -> None:
    session = await stage.open("plain")
    await stage.play(session, {"say": "the secret word is mango"})
    await stage.again()
    forked = (await stage.room.fork(session, who="owner")).id
    await stage.play(forked, {"past": True})
    assert "mango" in stage.said(forked)


async def test_the_owners_own_command_runs_without_the_agent(stage: Stage, computer: Computer) -> None:
    """In any session: no agent is started for it, nothing is asked, and the output is the turn's words."""
    session = await stage.open("missing")
    turn = await stage.say(session, text="!echo out; echo err >&2; exit 3")
    ended = await stage.ended(session, turn)
    assert ended.data["stop_reason"] == "end_turn"
    assert stage.said(session) == "````\nout\nerr\n\n[exit code 3]\n````"
    tool = await stage.audience.until(session, "tool", status="failed")
    assert tool.data["raw_input"] == {"command": "echo out; echo err >&2; exit 3"}
    assert (await stage.room.get(session)).status == "idle"
    other = await stage.open()
    await stage.play(other, {"say": "words "})
    await stage.ended(other, await stage.say(other, text="!pwd"))
    await stage.play(other, {"past": True})
    assert "/workspace" in stage.said(other)
    assert "!pwd" not in stage.said(other)


@pytest.mark.parametrize("way", ["cancel", "kill switch"])
async def test_the_owners_own_command_is_stopped_like_a_turn(stage: Stage, computer: Computer, way: str) -> None:
    session = await stage.open("missing")
    turn = await stage.say(session, text="!echo begun; sleep 4711")
    await stage.audience.until_said("begun")
    await (stage.room.cancel(session) if way == "cancel" else stage.room.stop_all("enough"))
    ended = await stage.ended(session, turn)
    assert ended.data["stop_reason"] == "cancelled"
    assert not [row for row in await computer.processes() if "4711" in " ".join(row.command)]
