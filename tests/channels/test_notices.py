"""What happens in other parts of Freehold reaches the owner through a channel."""

import asyncio
from typing import Any

import pytest
from tests.channels.conftest import ChannelGateway
from tests.support.condition import until
from tests.support.telegram import TelegramDouble

from freehold.agents.sessions.approval_store import AnswerDelivery, ApprovalStore
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.sessions.request_parts import RequestPart
from freehold.agents.sessions.rows import DraftEvent
from freehold.agents.sessions.store import SessionStore
from freehold.channels.notices import make_prompt_key

Json = dict[str, Any]
RUN: Json = {"routine": "nightly", "run": "r1", "session": None, "quiet": False, "cost": None, "error": None}
LIMIT: Json = {"limit": "dollars", "scope": "day", "spent": 5.0, "of": 5.0}
TOLD: list[tuple[str, Json, list[str]]] = [
    ("models.budget_reached", LIMIT, ["A budget is reached", "dollars of day", "/settings/budgets"]),
    ("routine.paused", {"routine": "nightly", "reason": "It failed 5 times in a row"}, ["nightly: paused", "5 times"]),
    ("routine.budget_reached", {"routine": "nightly", "spent": 1.2, "of": 1.0}, ["nightly: its budget", "1.2 of 1.0"]),
    ("routine.run_done", {**RUN, "result": "All is well."}, ["nightly: done", "│ All is well.", "/routines"]),
    ("routine.run_failed", {**RUN, "error": "exit code 3"}, ["nightly: failed", "exit code 3"]),
    ("routine.run_uncertain", {**RUN, "error": "cut off"}, ["nightly: it is not known whether it ran", "cut off"]),
    ("backup.failed", {"code": "backup.unreachable", "message": "No answer"}, ["Backups fail", "No answer", "/backup"]),
    ("backup.verified", {"packs": 3, "problems": ["pack 1 is lost"]}, ["A backup is damaged", "pack 1 is lost"]),
    ("backup.rehearsed", {"number": 3, "problems": ["no key"]}, ["A backup cannot be restored", "no key"]),
    ("backup.failed", {"work": "verify", "code": "x", "message": "No answer"}, ["Backups cannot be verified"]),
    ("backup.stale", {"since": "2026-06-01T12:00:00Z"}, ["Backups are late", "2026-06-01T12:00:00Z", "/backup"]),
]
QUIET: list[tuple[str, Json]] = [
    ("backup.verified", {"packs": 3, "problems": []}),
    ("backup.rehearsed", {"number": 3, "problems": []}),
    ("routine.run_done", {**RUN, "quiet": True}),
    ("routine.run_cancelled", RUN),
    ("routine.paused", {"routine": "nightly", "reason": None}),
]


@pytest.mark.parametrize(("kind", "data", "parts"), TOLD, ids=[kind for kind, _, _ in TOLD])
async def test_the_owner_is_told(
    gateway: ChannelGateway, telegram: TelegramDouble, kind: str, data: Json, parts: list[str]
) -> None:
    await gateway.pair_telegram(telegram)
    gateway.gateway.services.timeline.append(kind, data)
    (text,) = await until(lambda: [text for text in telegram.texts() if parts[0] in text])
    assert all(part in text for part in parts), text


async def test_what_went_well_by_itself_disturbs_nobody(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    before = len(telegram.texts())
    timeline = gateway.gateway.services.timeline
    for kind, data in QUIET:
        timeline.append(kind, data)
    timeline.append("backup.failed", {"code": "backup.lost", "message": "The last one"})
    # News is written in the order of the timeline.
    await until(lambda: any("The last one" in text for text in telegram.texts()))
    (text,) = telegram.texts()[before:]
    assert text.startswith("Backups fail\n")


async def test_an_event_that_cannot_be_told_silences_no_other(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    timeline = gateway.gateway.services.timeline
    timeline.append("approval.asked", {})  # of a version that has a bug
    timeline.append("backup.failed", {"code": "backup.lost", "message": "The next one"})
    await until(lambda: any("The next one" in text for text in telegram.texts()))


# Turns that go on with an answer of the owner


class Conversation:
    """A session whose agent ends while it waits for the owner, so that each answer begins a turn of its own."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._approvals = ApprovalStore(store.timeline)
        self.session = store.create("builtin", "A title", None, who="test").id

    def begin(self, key: str) -> int:
        prompt: Json = {"text": "Do it", "files": [], "images": []}
        return self._store.turns.add(self.session, key, prompt, first=False, waits=False, who="test")[0].turn

    def ask(self, turn: int, command: str) -> str:
        """Returns the approval."""
        parts = (RequestPart("command", "Command", command),)
        request = PermissionRequest("execute", command, {}, (command,), f"digest of {command}", parts=parts)
        approval = self._approvals.add(self.session, turn, request)[0].id
        self._approvals.mark_orphaned(self.session)
        return approval

    def answer(self, approval: str) -> int:
        """Returns the turn that tells the agent."""
        key = f"approval:{approval}"
        delivery = AnswerDelivery(key, lambda _row: "The user said yes", waits=False, status="working")
        self._approvals.answer(approval, "once", None, "owner", None, delivery)
        return self._store.turns.find(self.session, key).turn

    def end(self, turn: int, text: str) -> None:
        ended = {"stop_reason": "end_turn", "changes": None, "usage": None}
        events: list[DraftEvent] = [("message", {"id": f"{turn}", "text": text}), ("turn.ended", ended)]
        self._store.append(self.session, turn, events, status="idle", ended=True)


async def begin_conversation(gateway: ChannelGateway) -> Conversation:
    await gateway.gateway.context.sessions.ready.wait()
    store = gateway.gateway.context.sessions.dependencies.store
    return await asyncio.to_thread(Conversation, store)


async def test_a_routine_is_told_with_the_answer_of_its_own_turn_alone(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    """It may go on in a session that the owner uses as well."""
    await gateway.pair_telegram(telegram)
    before = len(telegram.texts())
    talk = await begin_conversation(gateway)
    turn = talk.begin("routine:r1:1")
    approval = talk.ask(turn, "make")
    mine = talk.begin("chosen by the page")
    talk.end(talk.answer(approval), "The routine has built it.")
    talk.end(mine, "This is for the owner.")
    timeline = gateway.gateway.services.timeline
    timeline.append("routine.run_done", {**RUN, "session": talk.session, "turn": turn})
    await until(lambda: any("nightly: done" in text for text in telegram.texts()))
    # News is written in the order of the timeline, and may be sent together.
    before_it, _, told = "\n".join(telegram.texts()[before:]).partition("Routine nightly: done")
    assert "│ The routine has built it." in told
    assert "This is for the owner." not in told
    # What goes on with the answer to a routine is no turn of the owner, whose own is told.
    assert before_it.count("Finished: A title") == 1
    assert "This is for the owner." in before_it
    assert "The routine has built it." not in before_it


async def test_what_goes_on_with_an_answer_is_told_where_its_first_prompt_came_from(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    await gateway.prefer(tells=[])
    number = telegram.number_of("paired")
    talk = await begin_conversation(gateway)
    first = talk.begin(make_prompt_key("telegram", str(number)))
    second = talk.answer(talk.ask(first, "make"))
    asked_again = talk.ask(second, "make install")
    await until(lambda: any("make install" in text for text in telegram.texts()))
    talk.end(talk.answer(asked_again), "It is installed.")
    await until(lambda: any("It is installed." in text for text in telegram.texts()))
    told = [one for one in list(telegram.sent) if "make install" in one["text"] or "It is installed." in one["text"]]
    assert [one["reply_parameters"]["message_id"] for one in told] == [number, number]


@pytest.mark.parametrize("other", ["none", "of another session"])
async def test_a_key_that_only_looks_like_an_answer_hides_nothing(
    gateway: ChannelGateway, telegram: TelegramDouble, other: str
) -> None:
    """A client chooses the keys of its prompts: a made-up one must not keep the end of its turn from the owner."""
    await gateway.pair_telegram(telegram)
    elsewhere = await begin_conversation(gateway)
    asked = elsewhere.ask(elsewhere.begin("routine:r1:1"), "make")
    talk = await begin_conversation(gateway)
    talk.begin("mine")
    approval = asked if other != "none" else "none"
    talk.end(talk.begin(f"approval:{approval}"), "It is done.")
    (text,) = await until(lambda: [text for text in telegram.texts() if "It is done." in text])
    assert "Finished: A title" in text
