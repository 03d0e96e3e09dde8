"""A complete Freehold with a real agent, reached through a channel: prompts, answers, files, undo, and kill -9."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.condition import until
from tests.support.nostr import NostrPhone
from tests.support.running_freehold import FreeholdOptions, RunningFreehold
from tests.support.telegram import OWNER, TOKEN, TelegramDouble, running_telegram

from freehold.timeline import Timeline

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
NOSTR = NostrPhone()
FREEHOLD = FreeholdOptions(
    agents=("builtin",),
    manifest="[channels]\napprovals = true\nmax_attachment = 1000\n"
    f'[mesh]\nmode = "peer"\n[mesh.relay]\nenabled = true\nowner = "{NOSTR.npub}"\n',
)


class Phone:
    """The owner with a paired channel."""

    def __init__(self, freehold: RunningFreehold, double: TelegramDouble) -> None:
        self.freehold = freehold
        self.double = double

    async def pair(self) -> None:
        body = {"kind": "telegram", "settings": {"api": self.double.url}, "secret": TOKEN}
        made = await self.freehold.http.post("/v1/channels", json=body)
        assert made.status_code == 201, made.text
        await until(lambda: self.double.polls > 1)
        code = (await self.freehold.call("POST", "/v1/channels/telegram/pair"))["code"]
        self.double.say(f"/pair {code}")
        await self.hears("paired")
        tells = ["needs_you", "finished", "failed", "budget", "routine"]
        await self.freehold.call("PATCH", "/v1/channels/telegram/preferences", tells=tells, batch=0)

    async def hears(self, part: str, count: int = 1) -> int:
        """The number of the last message with this text, when there are so many."""
        await until(lambda: sum(part in text for text in self.double.texts()) >= count)

        async def nothing_waits() -> bool:
            (row,) = await self.freehold.call("GET", "/v1/channels")
            return bool(row["waiting"] == 0)

        await until(nothing_waits)  # from then on it can be replied to
        return self.double.number_of(part)

    async def sessions(self) -> list[str]:
        return [one["id"] for one in (await self.freehold.call("GET", "/v1/sessions"))["sessions"]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def phone(freehold: RunningFreehold) -> AsyncIterator[Phone]:
    with running_telegram() as double:
        owner = Phone(freehold, double)
        await until(freehold.is_connected)
        await owner.pair()
        yield owner


async def test_a_message_starts_a_session_and_a_reply_goes_on_with_it(phone: Phone) -> None:
    asked = phone.double.say("SAY The answer is 42.")
    number = await phone.hears("The answer is 42.")
    sent = next(one for one in phone.double.sent if one["message_id"] == number)
    assert sent["reply_parameters"]["message_id"] == asked
    assert "Finished: " in sent["text"]
    (session,) = await phone.sessions()
    phone.double.say("SAY And this follows.", reply_to=number)
    await phone.hears("And this follows.")
    assert await phone.sessions() == [session]
    started = [one for one in await phone.freehold.events(session) if one["kind"] == "turn.started"]
    assert [one["data"]["key"].split(":")[:2] for one in started] == [["channel", "telegram"]] * 2


async def test_a_request_of_a_real_agent_is_allowed_once(phone: Phone) -> None:
    phone.double.say("RUN touch by-phone.txt")
    number = await phone.hears("touch by-phone.txt")
    assert not phone.freehold.file("by-phone.txt").exists()
    phone.double.say("/allow", reply_to=number)
    await phone.hears("Allowed once")
    await phone.hears("Finished: RUN touch by-phone.txt")  # from then on it can be undone
    assert phone.freehold.file("by-phone.txt").exists()
    policy = await phone.freehold.call("GET", "/v1/approvals/policy")
    assert policy["rules"] == []


async def test_an_undo_is_shown_first_and_done_when_it_is_confirmed(phone: Phone) -> None:
    """Of what the agent of the test before has made."""
    phone.double.say("/undo yes")
    await phone.hears("nothing to confirm")
    phone.double.say("/undo")
    await phone.hears("Send /undo yes")
    assert phone.freehold.file("by-phone.txt").exists()
    phone.double.say("/undo yes")
    await phone.hears("You can undo this too")
    await until(lambda: not phone.freehold.file("by-phone.txt").exists())
    (entry, *_) = (await phone.freehold.call("GET", "/v1/history?limit=1"))["entries"]
    assert (entry["kind"], entry["who"]["via"]) == ("undo", "channel")


async def test_an_attachment_lands_in_the_inbox_and_a_large_one_does_not(phone: Phone) -> None:
    phone.double.files = {"f1": b"content of the file", "f2": b"x" * 5000, "f3": b"y" * 5000}
    files = [
        {"file_id": "f1", "file_name": "../../../etc/cron.d/evil notes.txt", "file_size": 19},
        {"file_id": "f2", "file_name": "large.bin", "file_size": 5000},
        {"file_id": "f3", "file_name": "lies.bin", "file_size": 10},
    ]
    for file in files:
        phone.double.say(None, caption="SAY I see it.", document=file)
    await phone.hears("larger than 1000 bytes", 2)
    inbox = phone.freehold.file("inbox")
    (stored,) = [path for path in inbox.iterdir() if path.read_bytes() == b"content of the file"]
    assert stored.name.endswith("-etc-cron.d-evil-notes.txt")
    assert [path for path in inbox.iterdir() if path.stat().st_size > 1000] == []


async def test_after_kill_nine_nothing_is_lost_and_no_prompt_is_sent_twice(phone: Phone) -> None:
    before = len(await phone.sessions())
    phone.double.say("SAY Told after the kill.")
    await phone.freehold.kill_gateway()
    phone.double.say("SAY Sent after the kill.")
    await phone.hears("Told after the kill.")
    await phone.hears("Sent after the kill.")
    sessions = await phone.sessions()
    turns = [
        one["data"]["prompt"]["text"]
        for session in sessions
        for one in await phone.freehold.events(session)
        if one["kind"] == "turn.started"
    ]
    assert turns.count("SAY Told after the kill.") == 1
    assert turns.count("SAY Sent after the kill.") == 1
    assert len(sessions) >= before + 2
    assert {one["chat_id"] for one in phone.double.sent} == {OWNER}


async def test_the_command_line_lists_tries_and_removes(phone: Phone) -> None:
    harness = phone.freehold.harness
    listed = harness.run("channels", check=True).stdout
    assert f"telegram (telegram): paired with {OWNER}" in listed
    assert "has taken a message" in harness.run("channels", "test", "telegram", check=True).stdout
    changed = harness.run(
        "channels", "set", "telegram", "--quiet", "22:00-07:00", "--zone", "UTC", "--json", check=True
    )
    assert json.loads(changed.stdout)["preferences"]["quiet_from"] == "22:00"
    assert harness.run("channels", "set", "telegram", "--quiet", "late").returncode != 0
    assert TOKEN not in harness.run("channels", "--json", check=True).stdout
    harness.run("channels", "remove", "telegram", check=True)
    assert "There are no channels" in harness.run("channels", "list", check=True).stdout


async def test_the_owner_talks_to_a_session_from_a_nostr_client_also_after_kill_nine(phone: Phone) -> None:
    """The last one: the channel of the others is gone by now."""
    freehold = phone.freehold
    relay = freehold.url.replace("http", "ws", 1) + "/relay"
    freehold.harness.run("channels", "add", "nostr", check=True)

    async def has_mesh() -> bool:
        return (await freehold.http.get("/v1/mesh")).status_code == 200

    await until(has_mesh)
    NOSTR.to = (await freehold.call("GET", "/v1/mesh"))["npub"]
    with Timeline(freehold.home.timeline) as timeline:
        await until(lambda: timeline.query("SELECT 1 FROM channels_channel WHERE cursor IS NOT NULL"))
    async with NOSTR.connected(relay):
        code = (await freehold.call("POST", "/v1/channels/nostr/pair"))["code"]
        await NOSTR.say(f"/pair {code}")
        await NOSTR.hears("paired with you")
        await freehold.call("PATCH", "/v1/channels/nostr/preferences", tells=["finished"], batch=0)
        before = await phone.sessions()
        asked = await NOSTR.say("SAY By Nostr.")
        answer = await NOSTR.hears("By Nostr.")
        assert answer.reply_to == asked
        (session,) = set(await phone.sessions()) - set(before)

        async def nothing_waits() -> bool:
            (row,) = await freehold.call("GET", "/v1/channels")
            return bool(row["waiting"] == 0)

        await until(nothing_waits)  # from then on it can be replied to
        await NOSTR.say("SAY And more.", reply_to=answer.id)
        await NOSTR.hears("And more.")
    await freehold.kill_gateway()
    await until(has_mesh)
    async with NOSTR.connected(relay):
        await NOSTR.say("SAY After the kill.")
        await NOSTR.hears("After the kill.")
    started = [one for one in await freehold.events(session) if one["kind"] == "turn.started"]
    # The relay has kept all messages, and the new process has read them again.
    assert [one["data"]["prompt"]["text"] for one in started] == ["SAY By Nostr.", "SAY And more."]
    assert len(await phone.sessions()) == len(before) + 2
