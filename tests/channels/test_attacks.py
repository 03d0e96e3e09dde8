"""What strangers, lying servers and agents try through a channel, and what they get: nothing."""

import asyncio
import json
import time
from dataclasses import replace
from typing import Any

import pytest
from tests.channels.conftest import ChannelGateway, OpenGateway
from tests.support.condition import until
from tests.support.telegram import OWNER, STRANGER, TOKEN, TelegramDouble, utf16

from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.sessions.request_parts import RequestPart
from freehold.agents.visible_text import make_visible
from freehold.channels import pairing
from freehold.channels.outbox import MAX_WAITING, DraftMessage

QUESTION: dict[str, Any] = {"kind": "question", "options": [], "free_text": True}
SECRET = "the-value-of-a-secret-of-the-vault"


async def counted(gateway: ChannelGateway, strangers: int) -> None:
    async def reached() -> bool:
        return (await gateway.row()).strangers >= strangers

    await until(reached)


def make_request(command: str, *, hidden_bytes: int = 0, kind: str = "execute") -> PermissionRequest:
    """A permission request as the gate makes it: hidden characters are made visible."""
    return PermissionRequest(
        tool="tool",
        kind=kind,
        title=command[:60],
        details={},
        digest=f"digest of {command[:20]}",
        subjects=(command,),
        parts=(RequestPart("command", "Command", make_visible(command), hidden_bytes=hidden_bytes),),
        hidden_bytes=hidden_bytes,
    )


async def ask(gateway: ChannelGateway, request: PermissionRequest) -> str:
    """An agent asks. Returns the approval."""
    await gateway.gateway.context.sessions.ready.wait()
    dependencies = gateway.gateway.context.sessions.dependencies
    session = dependencies.store.create("builtin", "A session", None, who="test").id
    approval, _ = await asyncio.to_thread(dependencies.approvals.store.add, session, None, request)
    return approval.id


def state_of(gateway: ChannelGateway, approval: str) -> str:
    return gateway.gateway.context.sessions.dependencies.approvals.store.get(approval).state


async def told(gateway: ChannelGateway, telegram: TelegramDouble, part: str) -> int:
    """The number of a message that was sent and is stored as sent: from then on it can be replied to."""
    await until(lambda: any(part in text for text in telegram.texts()))
    await until(lambda: gateway.service.outbox.find_sent("telegram", str(telegram.number_of(part))))
    return telegram.number_of(part)


# Codes


async def test_guessed_codes_get_no_answer_and_few_tries(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.add_telegram(telegram)
    code = (await gateway.post("/telegram/pair"))["code"]
    for number in range(pairing.MAX_TRIES_EACH):
        telegram.say(f"/pair AAAAA-AAA{number:02}", sender=STRANGER)
    # Now even the right one is none from this sender.
    telegram.say(f"/pair {code}", sender=STRANGER)
    await counted(gateway, pairing.MAX_TRIES_EACH + 1)
    assert (await gateway.row()).owner is None
    assert telegram.sent == []
    # The owner is not locked out by that.
    telegram.say(f"/pair {code}")
    await until(lambda: telegram.sent)
    assert {one["chat_id"] for one in telegram.sent} == {OWNER}


async def test_a_code_is_void_after_many_wrong_ones_of_everybody(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.add_telegram(telegram)
    code = (await gateway.post("/telegram/pair"))["code"]
    for number in range(pairing.MAX_TRIES):
        telegram.say(f"/pair AAAAA-AAA{number:02}", sender=STRANGER + number)
    await counted(gateway, pairing.MAX_TRIES)
    telegram.say(f"/pair {code}")
    await counted(gateway, pairing.MAX_TRIES + 1)
    assert (await gateway.row()).owner is None


async def test_a_code_is_good_once_and_not_for_long(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.add_telegram(telegram)
    first = (await gateway.post("/telegram/pair"))["code"]
    with gateway.gateway.services.timeline.transaction() as tx:
        tx.execute("UPDATE channels_code SET expires = ?", (time.time() - 1,))
    telegram.say(f"/pair {first}")
    await counted(gateway, 1)
    second = (await gateway.post("/telegram/pair"))["code"]
    telegram.say(f"/pair {second}")
    await until(lambda: telegram.sent)
    telegram.say(f"/pair {second}", sender=STRANGER)
    await counted(gateway, 2)
    row = await gateway.row()
    assert row.owner is not None
    assert row.owner.sender == str(OWNER)


# Messages


@pytest.mark.parametrize(
    "update",
    [
        {"message": {"message_id": 1, "date": 1, "chat": {"id": -5, "type": "group"}, "from": {"id": OWNER, "is_bot": False}, "text": "/stop"}},
        {"message": {"message_id": 1, "date": 1, "chat": {"id": OWNER, "type": "private"}, "from": {"id": OWNER, "is_bot": True}, "text": "/stop"}},
        {"message": {"message_id": 1, "date": 1, "chat": {"id": OWNER, "type": "private"}, "from": {"id": OWNER, "is_bot": False}, "forward_origin": {}, "text": "/stop"}},
        {"message": {"message_id": 1, "date": 1, "chat": {"id": OWNER, "type": "private"}, "from": {"id": STRANGER, "is_bot": False}, "text": "/stop"}},
        {"message": {"message_id": 1, "date": 1, "chat": {"id": True, "type": "private"}, "from": {"id": True, "is_bot": False}, "text": "/stop"}},
        {"message": {"message_id": "1", "date": 1, "chat": {"id": str(OWNER), "type": "private"}, "from": {"id": str(OWNER), "is_bot": False}, "text": "/stop"}},
        {"edited_message": {"message_id": 1, "date": 1, "chat": {"id": OWNER, "type": "private"}, "from": {"id": OWNER, "is_bot": False}, "text": "/stop"}},
        {"message": "/stop"},
        {"message": {"text": "/stop"}},
        {},
    ],
)  # fmt: skip
async def test_an_update_that_only_looks_like_the_owners_stops_nothing(
    gateway: ChannelGateway, telegram: TelegramDouble, update: dict[str, Any]
) -> None:
    await gateway.pair_telegram(telegram)
    telegram.push(update)
    telegram.say("/status")
    await until(lambda: any("wait for you" in text for text in telegram.texts()))
    assert gateway.gateway.services.models.stopped is None
    assert (await gateway.row()).strangers == 1


async def test_no_update_is_taken_from_outside(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    """Messages are fetched. There is no address to which a forged one could be sent."""
    await gateway.pair_telegram(telegram)
    for path in ("webhook", "update", "updates", f"bot{TOKEN}"):
        for headers in ({}, gateway.headers):
            reply = await gateway.gateway.http.post(f"/v1/channels/telegram/{path}", json={}, headers=headers)
            assert reply.status_code in (401, 404, 405)


async def test_a_replayed_message_is_carried_out_once(open_gateway: OpenGateway, telegram: TelegramDouble) -> None:
    async with open_gateway("") as gateway:
        await gateway.pair_telegram(telegram)
        telegram.say("/status")
        await until(lambda: any("wait for you" in text for text in telegram.texts()))
        message = {"message": telegram.said[-1]}
        # The server sends it again with a new number, and after a restart.
        telegram.push(message)
        telegram.say("/help")
        await until(lambda: any("/undo" in text for text in telegram.texts()))
    telegram.push(message)
    async with open_gateway("") as gateway:
        telegram.say("/help again")
        await until(lambda: sum("/undo" in text for text in telegram.texts()) == 2)
    assert sum("wait for you" in text for text in telegram.texts()) == 1


async def test_an_old_message_is_not_carried_out(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    telegram.say("/undo yes", date=int(time.time()) - 7200)
    await until(lambda: any("too late" in text for text in telegram.texts()))


async def test_an_oversized_message_is_refused_with_a_word(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    telegram.say("x" * 20_000)
    await until(lambda: any("more than 16000 characters" in text for text in telegram.texts()))
    assert await gateway.gateway.context.sessions.search(limit=5) == []


async def test_half_characters_and_nul_harm_nothing(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    telegram.say("/status \ud800 \0")
    telegram.say("\ud83d \0 hello", document={"file_id": "\udfff", "file_name": "\ud800\0", "file_size": 1})
    telegram.say("/help")
    await until(lambda: any("/undo" in text for text in telegram.texts()))
    assert (await gateway.row()).state == "ok"


async def test_a_flood_of_the_owners_own_is_limited_and_told_once(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    for _ in range(45):
        telegram.say("/status")
    await until(lambda: any("too fast" in text for text in telegram.texts()))
    ((rows,),) = gateway.gateway.services.timeline.query("SELECT count(*) FROM channels_received")
    assert rows < 45


async def test_a_reply_to_a_message_that_is_not_ours_reaches_no_session(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    """Neither a number of a session, nor one of another channel or of another's message leads anywhere."""
    await gateway.pair_telegram(telegram)
    session = await gateway.finish_turn("done", title="Foreign")
    timeline = gateway.gateway.services.timeline
    gateway.service.store.add("other", "telegram", {"api": telegram.url}, who="test")
    with timeline.transaction() as tx:
        tx.execute(
            "INSERT INTO channels_message (channel, key, tell, session, subject, text, link, at, due, state, remote)"
            " VALUES ('other', 'k', 'finished', ?, '', '', '', 0, 0, 'sent', '999')",
            (session,),
        )
    before = gateway.gateway.context.sessions.dependencies.store.get(session).turns
    for replied in (999, 1, 2**40):
        telegram.say("Delete everything", reply_to=replied)
    await until(lambda: sum("no session that I know" in text for text in telegram.texts()) == 3)
    assert gateway.gateway.context.sessions.dependencies.store.get(session).turns == before


async def test_a_shell_command_is_not_taken_through_a_channel(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    for text in ("!rm -rf /", "  \n !id"):
        telegram.say(text)
    await until(lambda: sum("shell command" in text for text in telegram.texts()) == 2)
    assert await gateway.gateway.context.sessions.search(limit=5) == []


# Requests of agents


async def test_a_request_is_shown_whole_and_answered_once(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    approval = await ask(gateway, make_request("git push origin main"))
    number = await told(gateway, telegram, "git push origin main")
    for text in ("/allow always", "/always", "always"):
        telegram.say(text, reply_to=number)
    await until(lambda: len(telegram.sent) >= 5)
    assert state_of(gateway, approval) == "pending"
    assert gateway.gateway.context.sessions.dependencies.approvals.rules.all() == []
    telegram.say("/deny", reply_to=number)
    await until(lambda: state_of(gateway, approval) == "answered")
    telegram.say("/allow", reply_to=number)
    await until(lambda: any("answered or withdrawn already" in text for text in telegram.texts()))
    rows = gateway.gateway.services.timeline.read(kinds=("approval.answered",))
    assert [(one.who, one.data["answer"]) for one in rows] == [("channel:telegram", "reject")]


async def test_hidden_characters_of_a_request_are_shown(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    await ask(gateway, make_request("echo safe \u202e gpj.exe \u200b\u2066; curl evil"))
    await until(lambda: any("evil" in text for text in telegram.texts()))
    (text,) = [text for text in telegram.texts() if "evil" in text]
    assert "echo safe ⟨U+202E⟩ gpj.exe ⟨U+200B⟩⟨U+2066⟩; curl evil" in text
    assert not set(text) & set("\u202e\u200b\u2066")


@pytest.mark.parametrize("why", ["longer than a message", "not shown whole", "has a secret", "wide characters"])
async def test_a_request_that_cannot_be_shown_whole_is_answered_in_the_page_only(
    gateway: ChannelGateway, telegram: TelegramDouble, why: str
) -> None:
    await gateway.pair_telegram(telegram)
    await asyncio.to_thread(gateway.gateway.services.vault.set, "other", SECRET)
    request = {
        "longer than a message": make_request("echo " + "a" * 4000 + "; curl evil"),
        "not shown whole": make_request("echo a", hidden_bytes=10),
        "has a secret": make_request(f"curl -H 'token: {SECRET}' https://example.com"),
        "wide characters": make_request("echo " + "\U0001f600" * 1900),
    }[why]
    approval = await ask(gateway, request)
    await until(lambda: any("cannot show all of it" in text for text in telegram.texts()))
    (text,) = [text for text in telegram.texts() if "cannot show all of it" in text]
    assert "evil" not in text
    assert SECRET not in text
    assert "/allow" not in text
    telegram.say("/allow", reply_to=await told(gateway, telegram, "cannot show all of it"))
    await until(lambda: any("has not shown all of that request" in text for text in telegram.texts()))
    assert state_of(gateway, approval) == "pending"


async def test_what_acts_on_freehold_itself_is_answered_in_the_page_only(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    approval = await ask(gateway, make_request("Open the network to example.com", kind="host"))
    telegram.say("/allow", reply_to=await told(gateway, telegram, "Answer it in the page"))
    await until(lambda: any("has not shown all of that request" in text for text in telegram.texts()))
    assert state_of(gateway, approval) == "pending"


async def test_no_request_is_answered_unless_the_manifest_allows_it(
    open_gateway: OpenGateway, telegram: TelegramDouble
) -> None:
    async with open_gateway("") as gateway:
        await gateway.pair_telegram(telegram)
        approval = await ask(gateway, make_request("git push"))
        telegram.say("/allow", reply_to=await told(gateway, telegram, "git push"))
        await until(lambda: any("channels.approvals" in text for text in telegram.texts()))
        assert state_of(gateway, approval) == "pending"


async def test_an_answer_that_is_too_long_is_not_cut(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    """What is cut off could turn it round."""
    await gateway.pair_telegram(telegram)
    asked = replace(make_request("Remove it?", kind="question"), details=QUESTION)
    approval = await ask(gateway, asked)
    number = await told(gateway, telegram, "Remove it?")
    telegram.say("yes " + "x" * 2_000 + " but only the copy", reply_to=number)
    await until(lambda: any("more than 2000 characters" in text for text in telegram.texts()))
    assert state_of(gateway, approval) == "pending"
    telegram.say("only the copy", reply_to=number)
    await until(lambda: state_of(gateway, approval) == "answered")
    store = gateway.gateway.context.sessions.dependencies.approvals.store
    assert store.get(approval).note == "only the copy"


async def test_a_text_is_no_yes(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    """To a question that is answered by yes or no, a reply with "no" is not taken for an answer."""
    await gateway.pair_telegram(telegram)
    asked = replace(make_request("Remove it?", kind="question"), details={**QUESTION, "free_text": False})
    approval = await ask(gateway, asked)
    number = await told(gateway, telegram, "Remove it?")
    telegram.say("No, do not!", reply_to=number)
    await until(lambda: any("/allow for yes or /deny for no." in text for text in telegram.texts()))
    assert state_of(gateway, approval) == "pending"
    telegram.say("/deny", reply_to=number)
    await until(lambda: state_of(gateway, approval) == "answered")
    store = gateway.gateway.context.sessions.dependencies.approvals.store
    assert store.get(approval).answer == "reject"


async def test_an_answer_for_a_request_that_was_exchanged_does_not_count(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    approval = await ask(gateway, make_request("git status"))
    await told(gateway, telegram, "git status")
    with gateway.gateway.services.timeline.transaction() as tx:
        tx.execute("UPDATE agents_approval SET digest = 'another' WHERE id = ?", (approval,))
    telegram.say("/allow", reply_to=await told(gateway, telegram, "git status"))
    await until(lambda: any("another call" in text for text in telegram.texts()))
    assert state_of(gateway, approval) == "pending"


async def test_the_words_of_an_agent_cannot_look_like_ours(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    forged = "done\nAn agent needs you: x\n\u2028It asks for a permission.\rReply /allow to number 1"
    await gateway.finish_turn(forged, title="Fine\nAn agent needs you")
    await until(lambda: any("Finished" in text for text in telegram.texts()))
    (text,) = [text for text in telegram.texts() if "Finished" in text]
    first, *lines, link = text.splitlines()
    assert first == "Finished: Fine An agent needs you"
    assert lines
    assert all(line.startswith("│ ") for line in lines)
    assert link.startswith("http://freehold.localhost")


async def test_why_something_failed_cannot_look_like_our_words(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    """An agent writes its own error, and a file of the workspace that of its workflow."""
    await gateway.pair_telegram(telegram)
    forged = "An agent needs you: reply /allow to number 1"
    await gateway.finish_turn("", reason="error", error=forged)
    ended: dict[str, Any] = {"routine": "nightly", "run": "r", "session": None, "quiet": False, "cost": None}
    gateway.gateway.services.timeline.append("routine.run_failed", {**ended, "error": forged})
    paused = {"routine": "weekly", "reason": f"It failed 5 times in a row. The last time: {forged}"}
    gateway.gateway.services.timeline.append("routine.paused", paused)
    await until(lambda: sum(text.count(forged) for text in telegram.texts()) == 3)
    lines = [line for text in telegram.texts() for line in text.splitlines() if forged in line]
    assert len(lines) == 3
    assert all(line.startswith("│ ") for line in lines)


async def test_without_words_only_that_something_happened_is_sent(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    await gateway.prefer(batch=0, words=False)
    await gateway.finish_turn("A plan", reason="error", error="of the owner")
    ended: dict[str, Any] = {"routine": "nightly", "run": "r", "session": None, "quiet": False, "cost": None}
    gateway.gateway.services.timeline.append(
        "routine.run_failed", {**ended, "error": "of the owner", "result": "A plan"}
    )
    await until(lambda: all(any(one in text for text in telegram.texts()) for one in ("nightly: failed", "Failed: A")))
    assert not any("plan" in text or "of the owner" in text for text in telegram.texts())


async def test_secrets_are_masked_in_what_is_sent(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    await asyncio.to_thread(gateway.gateway.services.vault.set, "other", SECRET)
    await gateway.finish_turn(f"The key is {SECRET}, sk-ant-0123456789abcdefghij and {TOKEN}", title=f"Use {SECRET}")
    await until(lambda: any("Finished" in text for text in telegram.texts()))
    text = "\n".join(telegram.texts())
    for secret in (SECRET, "0123456789abcdefghij", TOKEN.partition(":")[2]):
        assert secret not in text
    assert "•••" in text


async def test_long_words_of_an_agent_fit_into_a_message(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    await gateway.finish_turn("\U0001f600\n" * 20_000, title="t" * 5_000)
    await until(lambda: any("Finished" in text for text in telegram.texts()))
    assert all(utf16(text) <= 4096 for text in telegram.texts())


# Servers


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"not json"),
        (200, b"[]"),
        (200, b"[" * 100_000),
        (200, json.dumps({"ok": True, "result": [{"update_id": "x"}]}).encode()),
        (200, json.dumps({"ok": True, "result": [{}] * 1000}).encode()),
        (200, json.dumps({"ok": True, "result": {"update_id": 1}}).encode()),
        (409, b'{"ok": false, "error_code": 409, "description": "Conflict: terminated by other getUpdates request"}'),
        (429, b'{"ok": false, "error_code": 429, "description": "Too Many", "parameters": {"retry_after": 1e99}}'),
        (200, b'{"ok": true, "result": "' + b"x" * 5_000_000 + b'"}'),
        (401, b'{"ok": false, "description": "\\u001b]0;x\\u0007\\u202e\\r\\nNot yours"}'),
        (302, b""),
    ],
    ids=lambda answer: f"{answer[0]}-{answer[1][:20]!r}",
)
async def test_a_server_that_lies_makes_the_channel_away_and_nothing_else(
    gateway: ChannelGateway, telegram: TelegramDouble, answer: tuple[int, bytes]
) -> None:
    await gateway.pair_telegram(telegram)
    telegram.answer = lambda method, _body: answer if method == "getUpdates" else None

    async def is_away() -> bool:
        return (await gateway.row()).state == "away"

    await until(is_away)
    words = str((await gateway.row()).error)
    assert TOKEN not in words
    assert words.isprintable()
    reply = await gateway.gateway.http.get("/v1/channels", headers=gateway.headers)
    assert reply.status_code == 200


async def test_the_outbox_is_bounded_and_says_what_it_dropped(
    gateway: ChannelGateway, telegram: TelegramDouble
) -> None:
    await gateway.pair_telegram(telegram)
    far = time.time() + 3600

    def fill() -> None:
        for number in range(MAX_WAITING + 10):
            gateway.service.outbox.add("telegram", DraftMessage(f"k{number}", "finished", "s", "t", "l", far))

    await asyncio.to_thread(fill)
    assert gateway.service.outbox.count_waiting("telegram") <= MAX_WAITING + 1
    assert (await gateway.row()).dropped >= 10
    assert gateway.service.outbox.add("telegram", DraftMessage("k509", "finished", "s", "t", "l", far)) is None


async def test_a_token_of_the_wrong_scope_may_not_even_look(gateway: ChannelGateway, telegram: TelegramDouble) -> None:
    await gateway.pair_telegram(telegram)
    headers = gateway.gateway.token("read", "prompt", "history", "terminal", name="weak")
    for method, path in (("GET", ""), ("POST", "/telegram/pair"), ("DELETE", "/telegram"), ("POST", "/telegram/test")):
        reply = await gateway.gateway.http.request(method, f"/v1/channels{path}", headers=headers)
        assert reply.status_code == 403
    key = await gateway.gateway.http.get("/v1/channels/webpush/key", headers=gateway.headers)
    assert key.status_code == 403
