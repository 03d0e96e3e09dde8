"""Matrix against a real homeserver (Synapse), with accounts of the channel, of the owner and of a stranger."""

from collections.abc import Iterator

import pytest
from tests.channels.conftest import ChannelGateway
from tests.support.condition import until
from tests.support.synapse import Synapse, running_synapse

from freehold.channels.contract import OutgoingMessage, OwnerAddress
from freehold.channels.kinds import MatrixSettings
from freehold.channels.matrix import MAX_EVENTS, MatrixChannel
from freehold.observe.secrets import Secret

pytestmark = pytest.mark.shared_processes


@pytest.fixture(scope="module")
def synapse() -> Iterator[Synapse]:
    with running_synapse() as running:
        yield running


class Room:
    """A channel with a new account, and a new owner and stranger beside it."""

    def __init__(self, gateway: ChannelGateway, synapse: Synapse, test: str) -> None:
        self.gateway = gateway
        self.bot, self.owner, self.stranger = [synapse.register(f"{who}-{test}") for who in ("bot", "me", "other")]
        self.room = ""

    async def pair(self) -> None:
        body = {"kind": "matrix", "settings": {"homeserver": self.bot.server.url}, "secret": self.bot.token}
        await self.gateway.post("", body, status=201)
        offer = await self.gateway.post("/matrix/pair", {"address": self.owner.user})
        self.room = await until(self.owner.find_invitation)
        self.owner.join(self.room)

        async def is_followed() -> bool:
            return (await self.gateway.row("matrix")).cursor is not None

        await until(is_followed)
        self.owner.say(self.room, f"/pair {offer['code']}")
        await until(lambda: self.has_told("paired"))
        await self.gateway.prefer("matrix", batch=0)

    def texts(self) -> list[str]:
        """What the channel has said."""
        return [one["content"]["body"] for one in self.owner.read(self.room) if one["sender"] == self.bot.user]

    def has_told(self, part: str) -> bool:
        return any(part in text for text in self.texts())

    async def strangers(self) -> int:
        return (await self.gateway.row("matrix")).strangers


async def test_the_owner_is_invited_paired_told_and_heard(gateway: ChannelGateway, synapse: Synapse) -> None:
    room = Room(gateway, synapse, "one")
    await room.pair()
    row = await gateway.row("matrix")
    assert row.owner == OwnerAddress(room.owner.user, room.room)
    session = await gateway.finish_turn("Here is the result.", title="A task")
    await until(lambda: room.has_told("Finished: A task"))
    assert any(text.endswith(f"/sessions?id={session}") for text in room.texts())
    asked = room.owner.say(room.room, "/status")
    await until(lambda: room.has_told("wait for you"))
    (answer,) = [one for one in room.owner.read(room.room) if "wait for you" in one["content"]["body"]]
    assert answer["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == asked


async def test_an_invitation_of_a_stranger_is_not_accepted_and_a_guest_of_the_room_is_not_heard(
    gateway: ChannelGateway, synapse: Synapse
) -> None:
    room = Room(gateway, synapse, "two")
    await room.pair()
    before = len(room.texts())
    # The owner cannot let anybody in: only the channel may invite.
    room.owner.call("POST", f"/rooms/{room.room}/invite", {"user_id": room.stranger.user}, status=403)
    room.stranger.join(room.room, status=403)
    made = room.stranger.call("POST", "/createRoom", {"invite": [room.bot.user], "is_direct": True})["room_id"]
    room.stranger.say(made, "/stop")

    async def is_counted() -> bool:
        return await room.strangers() == 1

    await until(is_counted)
    joined = room.stranger.call("GET", f"/rooms/{made}/joined_members")["joined"]
    assert list(joined) == [room.stranger.user]
    # And one that the channel's account has let in by other means is nobody here.
    room.bot.call("POST", f"/rooms/{room.room}/invite", {"user_id": room.stranger.user})
    room.stranger.join(room.room)
    room.stranger.say(room.room, "/stop")

    async def is_counted_too() -> bool:
        return await room.strangers() >= 2

    await until(is_counted_too)
    assert gateway.gateway.services.models.stopped is None
    assert len(room.texts()) == before


async def test_a_code_is_good_only_for_the_account_that_was_invited(gateway: ChannelGateway, synapse: Synapse) -> None:
    room = Room(gateway, synapse, "three")
    body = {"kind": "matrix", "settings": {"homeserver": synapse.url}, "secret": room.bot.token}
    await gateway.post("", body, status=201)
    offer = await gateway.post("/matrix/pair", {"address": room.owner.user})
    room.room = await until(room.owner.find_invitation)
    room.owner.join(room.room)
    room.bot.call("POST", f"/rooms/{room.room}/invite", {"user_id": room.stranger.user})
    room.stranger.join(room.room)

    async def is_followed() -> bool:
        return (await gateway.row("matrix")).cursor is not None

    await until(is_followed)
    room.stranger.say(room.room, f"/pair {offer['code']}")

    async def is_counted() -> bool:
        return await room.strangers() >= 1

    await until(is_counted)
    assert (await gateway.row("matrix")).owner is None
    room.owner.say(room.room, f"/pair {offer['code']}")
    await until(lambda: room.has_told("paired"))


async def test_a_repeated_message_is_in_the_room_once(gateway: ChannelGateway, synapse: Synapse) -> None:
    room = Room(gateway, synapse, "four")
    await room.pair()
    channel = MatrixChannel(MatrixSettings(homeserver=synapse.url), lambda: Secret(room.bot.token))
    try:
        message = OutgoingMessage("7-event:7", "Only once", "text", "http://freehold.localhost")
        ids = {await channel.send(message, OwnerAddress(room.owner.user, room.room)) for _ in range(3)}
    finally:
        await channel.close()
    assert len(ids) == 1
    assert sum("Only once" in text for text in room.texts()) == 1


async def test_messages_that_the_homeserver_does_not_tell_are_noticed(synapse: Synapse) -> None:
    """Of many that came at once, such as while everything was off, it has only the last."""
    bot, owner = synapse.register("bot-many"), synapse.register("me-many")
    channel = MatrixChannel(MatrixSettings(homeserver=synapse.url), lambda: Secret(bot.token))
    try:
        cursor = (await channel.receive(None)).cursor
        await channel.offer_pairing("code", owner.user)
        room = await until(owner.find_invitation)
        owner.join(room)
        batch = await channel.receive(cursor)
        assert not batch.is_cut
        for number in range(MAX_EVENTS + 1):
            owner.say(room, f"message {number}")
        batch = await channel.receive(batch.cursor)
        assert (len(batch.messages), batch.is_cut) == (MAX_EVENTS, True)
        owner.say(room, "one more")
        batch = await channel.receive(batch.cursor)
        assert ([one.text for one in batch.messages], batch.is_cut) == (["one more"], False)
    finally:
        await channel.close()
