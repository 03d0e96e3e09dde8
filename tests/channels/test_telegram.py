"""Telegram through a double of its Bot API: paired by a code, told what happens, and deaf to everybody else."""

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from tests.channels.conftest import ChannelGateway, OpenGateway
from tests.support.condition import until
from tests.support.telegram import OWNER, STRANGER, TOKEN, TelegramDouble


async def test_a_code_said_through_the_channel_pairs_it_with_whoever_said_it(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.add_telegram(telegram)
    offer = await gateway.post("/telegram/pair")
    assert offer["code"] in offer["words"]
    assert offer["link"] == f"https://t.me/my_freehold_bot?start={offer['code']}"
    assert (await gateway.row()).owner is None
    telegram.say(f"/start {offer['code'].lower()}")
    await until(lambda: any("paired" in text for text in telegram.texts()))
    row = await gateway.row()
    assert row.owner is not None
    assert (row.owner.sender, row.strangers) == (str(OWNER), 0)
    assert {one["chat_id"] for one in telegram.sent} == {OWNER}


async def test_news_is_told_with_its_words_and_a_link(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    session = await gateway.finish_turn("The roof is mended.\nIt no longer leaks.", title="Mend the roof")
    await until(lambda: any("roof" in text for text in telegram.texts()))
    (text,) = [text for text in telegram.texts() if "roof" in text]
    assert text.startswith("Finished: Mend the roof\n│ The roof is mended.\n│ It no longer leaks.\n")
    assert text.endswith(f"/sessions?id={session}")


async def test_backups_that_begin_to_fail_are_told(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    told = {"code": "backup.unreachable", "message": "s3://bucket does not answer"}
    gateway.gateway.context.services.timeline.append("backup.failed", told)
    await until(lambda: any("Backups fail" in text for text in telegram.texts()))
    text = next(text for text in telegram.texts() if "Backups fail" in text)
    assert "s3://bucket does not answer" in text
    assert "/backup" in text


async def test_an_eviction_by_the_host_is_told_and_a_short_absence_is_not(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    timeline = gateway.gateway.context.services.timeline
    for state in ("away", "registered", "evicted"):
        data = {"host": "https://hub.example.com", "state": state, "reason": None}
        timeline.append("mesh.registration_changed", data)
    await until(lambda: any("no longer knows this Freehold" in text for text in telegram.texts()))
    assert sum("hub.example.com" in text for text in telegram.texts()) == 1


async def test_what_waited_is_sent_once_after_the_gateway_was_killed(
    open_gateway: OpenGateway, telegram: TelegramDouble
) -> None:
    async with open_gateway("") as gateway:
        await gateway.pair_telegram(telegram)
        telegram.stop()
        await gateway.finish_turn("done", title="While it was away")
        timeline = gateway.gateway.services.timeline
        await until(lambda: timeline.query("SELECT 1 FROM channels_message WHERE tell = 'finished'"))
    telegram.start()
    async with open_gateway("") as gateway:
        await until(lambda: any("While it was away" in text for text in telegram.texts()))
        await until(lambda: gateway.service.outbox.count_waiting("telegram") == 0)
    async with open_gateway("") as gateway:
        await gateway.finish_turn("done", title="Later")
        await until(lambda: any("Later" in text for text in telegram.texts()))
    assert sum("While it was away" in text for text in telegram.texts()) == 1


async def test_a_dead_channel_is_said_in_health_and_blocks_nothing(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    telegram.stop()
    await gateway.finish_turn("done")

    async def is_away() -> bool:
        return (await gateway.read_health()).startswith("degraded False telegram: no connection")

    await until(is_away)
    assert TOKEN not in await gateway.read_health()
    telegram.start()
    await gateway.post("/telegram/test")
    await until(lambda: len(telegram.texts()) >= 3)
    await until(lambda: gateway.service.outbox.count_waiting("telegram") == 0)

    async def is_back() -> bool:
        return (await gateway.read_health()).startswith("ok")

    await until(is_back)


async def test_a_bot_that_the_owner_has_blocked_is_said_in_health_until_it_is_heard_again(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    """It is asked for messages all the time, and that goes well."""
    await gateway.pair_telegram(telegram)
    refused = json.dumps({"ok": False, "error_code": 403, "description": "Forbidden: bot was blocked\x1b[2J"})
    telegram.answer = lambda method, _body: (403, refused.encode()) if method == "sendMessage" else None
    await gateway.post("/telegram/test", status=503)
    polls = telegram.polls
    await until(lambda: telegram.polls > polls + 1)
    health = await gateway.read_health()
    assert health.startswith("degraded False telegram: a message was refused: ")
    assert "bot was blocked" in health
    assert "\x1b" not in health
    (shown,) = (await gateway.gateway.http.get("/v1/channels", headers=gateway.headers)).json()
    assert (shown["state"], "bot was blocked" in shown["error"]) == ("away", True)
    telegram.answer = lambda _method, _body: None
    await gateway.post("/telegram/test")
    assert (await gateway.read_health()).startswith("ok")


async def test_a_stranger_gets_no_answer_at_all_and_is_counted(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    before = len(telegram.sent)
    for number in range(300):
        telegram.say(f"hello {number}", sender=STRANGER + number % 7)
    telegram.say("/stop", sender=STRANGER)
    telegram.say("/status")

    async def is_counted() -> bool:
        return (await gateway.row()).strangers == 301

    await until(is_counted)
    await until(lambda: len(telegram.sent) > before)
    assert {one["chat_id"] for one in telegram.sent} == {OWNER}
    assert len(telegram.sent) == before + 1
    assert gateway.gateway.services.models.stopped is None


@pytest.mark.parametrize("text", ["/stop", " /Stop\n", "/STOP@my_bot now"])
async def test_stop_is_the_kill_switch(gateway: ChannelGateway, telegram: TelegramDouble, text: str) -> None:
    await gateway.pair_telegram(telegram)
    telegram.say(text)
    await until(lambda: any("All agents are stopped" in text for text in telegram.texts()))
    stopped = gateway.gateway.services.models.stopped
    assert stopped is not None
    assert stopped.who == "channel:telegram"
    telegram.say("/status")
    await until(lambda: any("kill switch is on" in text for text in telegram.texts()))


async def test_a_stop_that_waited_for_hours_stops_and_another_message_does_nothing(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    """As when Freehold was off. Stopping does no harm."""
    await gateway.pair_telegram(telegram)
    earlier = int(time.time()) - 2 * 3600
    telegram.say("Delete everything", date=earlier)
    telegram.say("/stop", date=earlier)
    await until(lambda: any("All agents are stopped" in text for text in telegram.texts()))
    assert gateway.gateway.services.models.stopped is not None
    assert gateway.gateway.services.timeline.query("SELECT count(*) FROM agents_session") == [(0,)]


async def test_what_the_owner_has_seen_in_the_page_is_not_told_again(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    await gateway.prefer(batch=3600)
    session = await gateway.finish_turn("seen", title="Seen before")
    timeline = gateway.gateway.services.timeline
    await until(lambda: timeline.query("SELECT 1 FROM channels_message WHERE tell = 'finished'"))
    await gateway.gateway.context.sessions.mark_seen(session, 100)
    with timeline.transaction() as tx:
        tx.execute("UPDATE channels_message SET due = 0")
    await gateway.post("/telegram/test")
    await until(lambda: gateway.service.outbox.count_waiting("telegram") == 0)
    assert not any("Seen before" in text for text in telegram.texts())


async def test_a_removed_channel_leaves_no_secret_and_asks_no_more(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    vault = gateway.gateway.services.vault
    assert [one.name for one in await asyncio.to_thread(vault.list)] == ["channel.telegram"]
    reply = await gateway.gateway.http.delete("/v1/channels/telegram", headers=gateway.headers)
    assert reply.status_code == 200
    assert await gateway.service.list() == []
    assert await asyncio.to_thread(vault.list) == []


async def test_news_is_collected_into_one_message(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    await gateway.prefer(batch=3600)
    sessions = [await gateway.finish_turn("words " * 1_000, title=f"Task {number}") for number in range(3)]
    timeline = gateway.gateway.services.timeline
    await until(lambda: len(timeline.query("SELECT 1 FROM channels_message WHERE tell = 'finished'")) == 3)
    with timeline.transaction() as tx:
        tx.execute("UPDATE channels_message SET due = ? WHERE state = 'waiting'", (time.time() - 1,))
    await gateway.post("/telegram/test")
    await until(lambda: any("Task 0" in text for text in telegram.texts()))
    (text,) = [text for text in telegram.texts() if "Task" in text]
    assert text.startswith("3 pieces of news\n")
    assert all(f"Finished: Task {number}" in text for number in range(3))
    assert all(f"/sessions?id={session}" in text for session in sessions)
    # A reply to it would be for several sessions.
    number = telegram.number_of("Task 0")
    await until(lambda: gateway.service.outbox.find_sent("telegram", str(number)))
    telegram.say("Go on", reply_to=number)
    await until(lambda: any("several sessions" in text for text in telegram.texts()))


async def test_in_quiet_hours_only_answers_to_the_owner_are_sent(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    now = datetime.now(UTC)
    begin, end = now - timedelta(hours=2), now + timedelta(hours=2)
    await gateway.prefer(batch=0, quiet_from=f"{begin:%H:%M}", quiet_until=f"{end:%H:%M}", zone="UTC")
    await gateway.finish_turn("done", title="At night")
    timeline = gateway.gateway.services.timeline
    found = await until(lambda: timeline.query("SELECT due, at FROM channels_message WHERE tell = 'finished'"))
    assert found[0][0] - found[0][1] > 3600
    telegram.say("/status")
    await until(lambda: any("wait for you" in text for text in telegram.texts()))
    assert not any("Finished" in text for text in telegram.texts())


async def test_what_waited_for_a_dead_channel_is_not_sent_in_quiet_hours(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    """It was due before they began. The channel comes back in the middle of the night."""
    await gateway.pair_telegram(telegram)
    await gateway.prefer(batch=0)
    telegram.stop()
    await gateway.finish_turn("done", title="In the evening")
    timeline = gateway.gateway.services.timeline
    await until(lambda: timeline.query("SELECT 1 FROM channels_message WHERE tell = 'finished' AND state = 'sending'"))
    now = datetime.now(UTC)
    begin, end = now - timedelta(hours=2), now + timedelta(hours=2)
    await gateway.prefer(batch=0, quiet_from=f"{begin:%H:%M}", quiet_until=f"{end:%H:%M}", zone="UTC")
    telegram.start()
    await gateway.post("/telegram/test")
    telegram.say("/status")
    await until(lambda: any("wait for you" in text for text in telegram.texts()))
    assert not any("Finished" in text for text in telegram.texts())
    await gateway.prefer(batch=0)
    await gateway.post("/telegram/test")
    await until(lambda: sum("In the evening" in text for text in telegram.texts()) == 1)


async def test_what_was_answered_while_quiet_hours_held_it_back_is_not_sent_afterwards(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    """It was being sent when the channel was lost and the quiet hours began."""
    await gateway.pair_telegram(telegram)
    await gateway.prefer(batch=0)
    telegram.stop()
    read = await gateway.finish_turn("done", title="Read in the page")
    timeline = gateway.gateway.services.timeline
    await until(lambda: timeline.query("SELECT 1 FROM channels_message WHERE tell = 'finished' AND state = 'sending'"))
    now = datetime.now(UTC)
    begin, end = now - timedelta(hours=2), now + timedelta(hours=2)
    await gateway.prefer(batch=0, quiet_from=f"{begin:%H:%M}", quiet_until=f"{end:%H:%M}", zone="UTC")
    telegram.start()
    await gateway.post("/telegram/test")
    await gateway.gateway.context.sessions.mark_seen(read, 100)
    await gateway.prefer(batch=0)
    await gateway.post("/telegram/test")
    await until(lambda: gateway.service.outbox.count_waiting("telegram") == 0)
    assert not any("Read in the page" in text for text in telegram.texts())


async def test_what_is_answered_while_a_channel_is_away_is_not_sent_when_it_is_back(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    telegram.stop()
    read = await gateway.finish_turn("done", title="Read in the page")
    timeline = gateway.gateway.services.timeline
    await until(lambda: timeline.query("SELECT 1 FROM channels_message WHERE tell = 'finished' AND state = 'sending'"))
    await gateway.gateway.context.sessions.mark_seen(read, 100)
    telegram.answer = lambda method, _body: (502, b"") if method == "sendMessage" else None
    telegram.start()
    gateway.service._deliveries["telegram"].retry_now()
    await until(lambda: timeline.query("SELECT 1 FROM channels_message WHERE state = 'skipped'"))
    telegram.answer = lambda _method, _body: None
    await gateway.post("/telegram/test")
    assert not any("Read in the page" in text for text in telegram.texts())


async def test_a_channel_that_is_added_again_is_not_told_of_the_time_between(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    await gateway.finish_turn("done", title="Before")
    await until(lambda: any("Before" in text for text in telegram.texts()))
    removed = await gateway.gateway.http.delete("/v1/channels/telegram", headers=gateway.headers)
    assert removed.status_code == 200
    await gateway.finish_turn("done", title="Between")
    telegram.sent.clear()
    await gateway.pair_telegram(telegram)
    await gateway.finish_turn("done", title="After")
    await until(lambda: any("After" in text for text in telegram.texts()))
    assert not any("Between" in text or "Before" in text for text in telegram.texts())
