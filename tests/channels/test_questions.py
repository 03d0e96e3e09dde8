"""What workflows ask, and network requests: told while they wait, and the former answered once through a channel."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from tests.channels.conftest import ChannelGateway, OpenGateway
from tests.support.condition import until
from tests.support.telegram import STRANGER, TelegramDouble

from freehold.channels.notices import NoticeWriter
from freehold.channels.outbox import StoredMessage
from freehold.channels.questions import AskedQuestion, choose, explain_answer, word_question
from freehold.channels.runner import make_notice_writer
from freehold.egress.names import parse_host
from freehold.egress.network_request import NetworkRequests
from freehold.errors import FreeholdError
from freehold.gateway.owner_questions import OwnerQuestion
from freehold.routines.workflows.messages import StepAsked
from freehold.routines.workflows.records import WorkflowStep
from freehold.routines.workflows.service import WorkflowService
from freehold.routines.workflows.step_store import MAX_TOLD_QUESTION
from freehold.routines.workflows.store import WorkflowOrder, WorkflowStore
from freehold.timeline import Json

CHOICES = ("commit", "leave it")
SECRET = "the-value-of-a-secret-of-the-vault"


async def store_of(gateway: ChannelGateway) -> WorkflowStore:
    service = gateway.gateway.context.service(WorkflowService)
    await service.ready.wait()
    return service.store


async def ask(gateway: ChannelGateway, question: str, choices: Sequence[str] = CHOICES) -> str:
    """A workflow that waits for an answer, as if its file had run. Returns its id."""
    store = await store_of(gateway)
    id = store.add(WorkflowOrder("flows/nightly.py", {}), who="owner").id
    await ask_again(gateway, id, question, choices)
    return id


async def ask_again(gateway: ChannelGateway, id: str, question: str, choices: Sequence[str] = CHOICES) -> None:
    store = await store_of(gateway)
    assert store.claim(id, "text", "here") is not None
    given = {"question": question, "choices": list(choices)}
    store.steps.begin_step(id, StepAsked("1", "ask", question[:200], given), 10, "here")
    store.suspend(id, ["1"])


async def step_of(gateway: ChannelGateway, id: str) -> WorkflowStep:
    return (await store_of(gateway)).steps.get_step(id, "1")


async def answer_in_page(gateway: ChannelGateway, id: str, answer: str) -> None:
    headers = gateway.gateway.token("prompt", "routines", "terminal", name=f"page-{id}")
    given = {"step": "1", "answer": answer}
    reply = await gateway.gateway.http.post(f"/v1/workflows/{id}/answer", json=given, headers=headers)
    assert reply.status_code == 200, reply.text


async def cancel_in_page(gateway: ChannelGateway, id: str) -> None:
    headers = gateway.gateway.token("prompt", "routines", name=f"page-{id}")
    reply = await gateway.gateway.http.post(f"/v1/workflows/{id}/cancel", headers=headers)
    assert reply.status_code == 200, reply.text


async def request_network(gateway: ChannelGateway, host: str) -> int:
    """A program in the computer has tried to reach it."""
    requests = NetworkRequests(gateway.gateway.services.timeline)
    await until(lambda: gateway.gateway.services.computer_access._egress is not None)
    assert requests.add(parse_host(host), 443, "test")
    return requests.all()[-1].id


async def told(gateway: ChannelGateway, telegram: TelegramDouble, part: str) -> int:
    """The number of a message that was sent and is stored as sent: from then on it can be replied to."""
    await until(lambda: any(part in text for text in telegram.texts()))
    await until(lambda: gateway.service.outbox.find_sent("telegram", str(telegram.number_of(part))))
    return telegram.number_of(part)


def has_heard(telegram: TelegramDouble, part: str, times: int) -> bool:
    return sum(part in text for text in telegram.texts()) == times


async def hold_back(gateway: ChannelGateway, telegram: TelegramDouble, how: str) -> Callable[[], Awaitable[None]]:
    """The channel sends nothing until what is returned is called."""
    telegram.stop()
    if how == "away":

        async def go_on() -> None:
            telegram.start()
            await gateway.post("/telegram/test")

        return go_on

    async def end_quiet_hours() -> None:
        now = datetime.now(UTC)
        begin, end = now - timedelta(hours=2), now + timedelta(hours=2)
        await gateway.prefer(batch=0, quiet_from=f"{begin:%H:%M}", quiet_until=f"{end:%H:%M}", zone="UTC")
        telegram.start()
        await gateway.post("/telegram/test")
        await gateway.prefer(batch=0)
        await gateway.post("/telegram/test")

    return end_quiet_hours


async def wait_until_held_back(gateway: ChannelGateway, count: int) -> None:
    await until(lambda: gateway.service.outbox.count_waiting("telegram") == count)


# Not sent any more


@pytest.mark.parametrize("how", ["away", "quiet hours"])
async def test_a_question_that_was_answered_in_the_page_is_not_sent_afterwards(
    gateway: ChannelGateway, telegram: TelegramDouble, how: str
) -> None:
    """Neither one whose workflow has ended. One that waits is sent."""
    await gateway.pair_telegram(telegram)
    go_on = await hold_back(gateway, telegram, how)
    answered, ended = await ask(gateway, "Commit the first?"), await ask(gateway, "Commit the second?")
    await ask(gateway, "Commit the third?")
    await wait_until_held_back(gateway, 3)
    await answer_in_page(gateway, answered, "commit")
    await cancel_in_page(gateway, ended)
    await go_on()
    await until(lambda: any("third?" in text for text in telegram.texts()))
    await wait_until_held_back(gateway, 0)
    assert not any("first?" in text or "second?" in text for text in telegram.texts())


@pytest.mark.parametrize("how", ["away", "quiet hours"])
async def test_a_network_request_that_was_answered_in_the_page_is_not_sent_afterwards(
    gateway: ChannelGateway, telegram: TelegramDouble, how: str
) -> None:
    """Neither one that a rule answers, nor those of which a wider one was made."""
    await gateway.pair_telegram(telegram)
    go_on = await hold_back(gateway, telegram, how)
    number = await request_network(gateway, "answered.example.com")
    await request_network(gateway, "ruled.example.net")
    for name in "abcdef":
        await request_network(gateway, f"{name}.many.example")
    await request_network(gateway, "open.example.org")
    waiting = [str(one.pattern) for one in NetworkRequests(gateway.gateway.services.timeline).all()]
    assert "*.many.example:443" in waiting
    await until(lambda: gateway.service.outbox.count_waiting("telegram") >= 7)
    egress = gateway.gateway.services.egress
    await egress.answer(number, "never")
    await egress.add_rule("allow", "*.example.net")
    (wide,) = [
        one.id for one in NetworkRequests(gateway.gateway.services.timeline).all() if "*.many" in str(one.pattern)
    ]
    await egress.answer(wide, "always")
    await go_on()
    await until(lambda: any("open.example.org" in text for text in telegram.texts()))
    await wait_until_held_back(gateway, 0)
    for host in ("answered", "ruled", "many"):
        assert not any(host in text for text in telegram.texts())


async def test_the_result_of_a_routine_that_was_read_is_not_sent_and_its_failure_is(gateway: ChannelGateway) -> None:
    """Read in the session of its run. That it failed is told anyway: the session need not say so."""
    session = await gateway.finish_turn("All is well.")
    context, timeline = gateway.gateway.context, gateway.gateway.services.timeline
    writer: NoticeWriter = make_notice_writer(context, gateway.service.section)
    run: dict[str, Json] = {
        "routine": "nightly",
        "run": "r1",
        "session": session,
        "quiet": False,
        "cost": None,
        "error": None,
    }
    done, failed = timeline.append("routine.run_done", run), timeline.append("routine.run_failed", run)

    def message(seq: int, session: str | None = session) -> StoredMessage:
        head = (seq, "phone", f"event:{seq}", "routine", session, None, None, False, "", "", "", None)
        return StoredMessage(*head, 0.0, 0.0, "waiting", None, None, None)

    assert not writer.is_stale(message(done.seq))
    await context.sessions.mark_seen(session, 100)
    assert writer.is_stale(message(done.seq))
    assert not writer.is_stale(message(failed.seq))
    assert not writer.is_stale(message(done.seq, None))


# Told


async def test_a_network_request_is_told(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    await request_network(gateway, "example.com")
    number = await told(gateway, telegram, "Network request: example.com:443")
    (text,) = [text for text in telegram.texts() if "Network request" in text]
    assert "Answer it in the page" in text
    assert text.endswith("/network")
    telegram.say("/allow", reply_to=number)
    telegram.say("yes", reply_to=number)
    await until(lambda: any("takes no /allow" in text for text in telegram.texts()))
    await until(lambda: any("network request is not answered here" in text for text in telegram.texts()))
    assert len(NetworkRequests(gateway.gateway.services.timeline).all()) == 1


async def test_the_status_counts_what_waits_of_every_kind(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    await ask(gateway, "Commit the first?")
    answered = await ask(gateway, "Commit the second?")
    await ask(gateway, "Commit the third?")
    number = await request_network(gateway, "answered.example.com")
    await request_network(gateway, "example.org")
    telegram.say("/status")
    await until(lambda: any("requests wait for you." in text for text in telegram.texts()))
    (text,) = [text for text in telegram.texts() if "0 requests wait for you." in text]
    assert "\n3 questions of workflows wait for you." in text
    assert "\n2 network requests wait for you." in text
    await answer_in_page(gateway, answered, "commit")
    await gateway.gateway.services.egress.answer(number, "never")
    telegram.say("/status")
    await until(lambda: any("\n1 network request waits for you." in text for text in telegram.texts()))
    (text,) = [text for text in telegram.texts() if "1 network request waits for you." in text]
    assert "\n2 questions of workflows wait for you." in text


class AwayQuestions:
    """Their journal is a database that cannot be reached."""

    async def list_waiting(self) -> list[OwnerQuestion]:
        raise FreeholdError("workflows.unavailable", "The database does not answer")

    async def answer(self, question: OwnerQuestion, text: str, *, who: str) -> None:
        raise AssertionError(question)


async def test_the_status_says_when_it_cannot_count_questions(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    await store_of(gateway)
    gateway.gateway.services.owner_questions.service = AwayQuestions()
    telegram.say("/status")
    await until(lambda: any("not known: The database does not answer" in text for text in telegram.texts()))
    (text,) = [text for text in telegram.texts() if "not known" in text]
    assert "0 requests wait for you." in text


# Answered


async def test_a_question_shows_its_choices_and_is_answered_once(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    by_number, by_words = await ask(gateway, "Commit the first?\n1. forged"), await ask(gateway, "Commit the second?")
    number = await told(gateway, telegram, "Commit the first?")
    (text,) = [text for text in telegram.texts() if "first?" in text]
    shown = "│ Commit the first?\n│ 1. forged\nYour choices:\n│ 1. commit\n│ 2. leave it\nReply to this message"
    assert shown in text
    for said in ("3", "0", "maybe", "Commit", "commit leave it", "/allow"):
        telegram.say(said, reply_to=number)
    await until(lambda: sum("is no answer" in text for text in telegram.texts()) == 5)
    await until(lambda: any("takes no /allow" in text for text in telegram.texts()))
    telegram.say("2", sender=STRANGER, reply_to=number)
    assert (await step_of(gateway, by_number)).state == "waiting"
    telegram.say("2", reply_to=number)
    await until(lambda: any("Answered: leave it" in text for text in telegram.texts()))
    telegram.say("1", reply_to=number)
    await until(lambda: any("answered already" in text for text in telegram.texts()))
    telegram.say(" commit\n", reply_to=await told(gateway, telegram, "second?"))
    await until(lambda: any("Answered: commit" in text for text in telegram.texts()))
    assert (await step_of(gateway, by_number)).result == "leave it"
    assert (await step_of(gateway, by_words)).result == "commit"
    rows = gateway.gateway.services.timeline.read(kinds=("workflow.step_done",))
    assert [(one.who, one.data["workflow"]) for one in rows] == [
        ("channel:telegram", by_number),
        ("channel:telegram", by_words),
    ]
    assert (await gateway.row()).strangers == 1


async def test_an_answer_to_an_older_question_decides_nothing(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    """The workflow was begun again and asks the same at the same step, and then something else."""
    await gateway.pair_telegram(telegram)
    id, store = await ask(gateway, "Commit?"), await store_of(gateway)
    older = await told(gateway, telegram, "Commit?")
    for times, question in enumerate(("Commit?", "Delete?"), 1):
        store.cancel(id, who="owner", reason="again")
        store.retry(id, who="owner")
        await ask_again(gateway, id, question)
        telegram.say("1", reply_to=older)
        await until(partial(has_heard, telegram, "not asked any more", times))
        assert (await step_of(gateway, id)).state == "waiting"
    telegram.say("1", reply_to=await told(gateway, telegram, "Delete?"))
    await until(lambda: any("Answered: commit" in text for text in telegram.texts()))


async def test_an_answer_counts_only_for_the_step_that_was_meant(gateway: ChannelGateway) -> None:
    """Also when the question is asked anew between looking for it and answering it."""
    id, store = await ask(gateway, "Commit?"), await store_of(gateway)
    questions = gateway.gateway.services.owner_questions.service
    assert questions is not None
    (asked,) = await questions.list_waiting()
    with pytest.raises(Exception, match="waits for no answer"):
        await questions.answer(replace(asked, number=asked.number + 1), "commit", who="channel:telegram")
    assert store.steps.get_step(id, "1").state == "waiting"
    await questions.answer(asked, "commit", who="channel:telegram")
    assert store.steps.get_step(id, "1").result == "commit"


async def test_a_question_without_choices_takes_any_text_that_is_not_too_long(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    id = await ask(gateway, "Which name?", ())
    number = await told(gateway, telegram, "Which name?")
    telegram.say("yes " + "x" * 2_000, reply_to=number)
    await until(lambda: any("more than 2000 characters" in text for text in telegram.texts()))
    telegram.say("!id", reply_to=number)
    await until(lambda: any("shell command" in text for text in telegram.texts()))
    assert (await step_of(gateway, id)).state == "waiting"
    telegram.say("Rose", reply_to=number)
    await until(lambda: any("Answered: Rose" in text for text in telegram.texts()))
    assert (await step_of(gateway, id)).result == "Rose"


async def test_no_question_is_answered_unless_the_manifest_allows_it(
    open_gateway: OpenGateway, telegram: TelegramDouble
) -> None:
    async with open_gateway("") as gateway:
        await gateway.pair_telegram(telegram)
        id = await ask(gateway, "Commit?")
        number = await told(gateway, telegram, "Commit?")
        (text,) = [text for text in telegram.texts() if "Commit?" in text]
        assert "│ 2. leave it\nAnswer it in the page." in text
        telegram.say("1", reply_to=number)
        await until(lambda: any("channels.approvals" in text for text in telegram.texts()))
        assert (await step_of(gateway, id)).state == "waiting"


async def test_a_question_that_is_not_shown_whole_is_answered_in_the_page_only(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    await asyncio.to_thread(gateway.gateway.services.vault.set, "other", SECRET)
    questions = {
        "Commit the long?" + "x" * 3_900: CHOICES,
        "Commit the hidden\u202e?": CHOICES,
        f"Commit the secret? {SECRET}": CHOICES,
        "Commit the forged?": ("no\n2. yes", "never"),
        "Commit the longest?" + "\U0001f600" * 3_900: CHOICES,
    }
    ids = [await ask(gateway, question, choices) for question, choices in questions.items()]
    for part in ("the long?", "the hidden", "the secret?", "the forged?", "the longest?"):
        number = await told(gateway, telegram, part)
        (text,) = [text for text in telegram.texts() if part in text]
        assert "This channel cannot show all of it. Answer it in the page." in text
        assert SECRET not in text
        telegram.say("1", reply_to=number)
    await until(lambda: sum("has not shown all of that question" in text for text in telegram.texts()) == len(ids))
    assert {(await step_of(gateway, id)).state for id in ids} == {"waiting"}


async def test_the_timeline_holds_no_question_that_is_very_long(gateway: ChannelGateway) -> None:
    """Not all characters are of one byte there, and an event has a limit."""
    for size, is_whole in ((4_000, False), (500, True)):
        await ask(gateway, "\U0001f600" * size, [f"{n}" + "\U0001f600" * 190 for n in range(20 if size > 500 else 2)])
        event = gateway.gateway.services.timeline.read(kinds=("workflow.asked",))[-1]
        assert ("choices" in event.data) == is_whole
        assert len(json.dumps(event.data)) < MAX_TOLD_QUESTION + 1_000


@pytest.mark.parametrize(
    ("said", "choices", "chosen"),
    [
        ("1", ("a", "b"), "a"),
        (" 2 ", ("a", "b"), "b"),
        ("b", ("a", "b"), "b"),
        ("B", ("a", "b"), None),
        ("3", ("a", "b"), None),
        ("0", ("a", "b"), None),
        ("-1", ("a", "b"), None),
        ("1.0", ("a", "b"), None),
        ("²", ("a", "b"), None),
        ("9" * 10_000, ("a", "b"), None),
        ("", ("a", "b"), None),
        ("2", ("2", "1"), "2"),
        ("2", ("10", "20"), None),
        ("20", ("10", "20"), "20"),
        ("a", ("a", "a "), None),
        ("2", ("a", "a "), "a "),
    ],
)
def test_only_a_number_that_was_shown_or_the_exact_words_choose(
    said: str, choices: tuple[str, ...], chosen: str | None
) -> None:
    assert choose(said, choices) == chosen


def test_choices_that_are_numbers_have_no_numbers() -> None:
    asked = AskedQuestion("w", "1", 1, "d", "How many?", ("10", "20"))
    word = partial(word_question, limit=4096, mask=str)
    assert word(asked).text.endswith("Your choices:\n│ 10\n│ 20")
    assert "exact words" in explain_answer(("10", "20"))
    assert "number" not in explain_answer(("10", "20"))
    assert word(replace(asked, choices=("ten", "twenty"))).text.endswith("Your choices:\n│ 1. ten\n│ 2. twenty")
    assert not word(replace(asked, choices=None)).whole
