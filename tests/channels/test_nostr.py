"""Nostr: the owner writes encrypted direct messages from a client of others, and nobody else is heard."""

import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import nostr_sdk as sdk
import pytest
from tests.channels.conftest import ChannelGateway, OpenGateway
from tests.channels.test_attacks import ask, make_request, state_of
from tests.gateway.running_gateway import listen
from tests.support.condition import until
from tests.support.nostr import NostrPhone, sdk_relay

from freehold.mesh.nostr.direct_message import wrap_message, write_rumor
from freehold.mesh.nostr.encryption import decrypt, encrypt
from freehold.mesh.nostr.event import sign_event
from freehold.mesh.nostr.filter import NostrFilter
from freehold.mesh.nostr.keys import NostrKey, make_key, read_secret_key
from freehold.mesh.service import MeshService
from freehold.timeline import Timeline

CHANNELS = "[channels]\napprovals = true\n"


def own_relay(phone: NostrPhone) -> str:
    """A Freehold that needs no third party: the owner's client uses its relay."""
    return f'{CHANNELS}[mesh]\nmode = "peer"\n[mesh.relay]\nenabled = true\nowner = "{phone.npub}"\n'


async def add(gateway: ChannelGateway, phone: NostrPhone) -> None:
    mesh = await gateway.gateway.context.service(MeshService).wait_open()
    await gateway.post("", {"kind": "nostr"}, status=201)

    async def is_listening() -> bool:
        return (await gateway.row("nostr")).cursor is not None

    await until(is_listening)
    phone.to = mesh.direct.address


async def pair(gateway: ChannelGateway, phone: NostrPhone) -> None:
    await add(gateway, phone)
    offer = await gateway.post("/nostr/pair")
    assert (phone.to in offer["words"], offer["link"]) == (True, f"nostr:{phone.to}")
    await phone.say(f"/pair {offer['code']}")
    await phone.hears("paired with you")
    await gateway.prefer("nostr", batch=0)


async def strangers(gateway: ChannelGateway) -> int:
    return (await gateway.row("nostr")).strangers


async def counted(gateway: ChannelGateway, wanted: int) -> None:
    async def reached() -> bool:
        return await strangers(gateway) >= wanted

    await until(reached)


async def is_quiet(gateway: ChannelGateway, phone: NostrPhone) -> None:
    """The next command of the owner is answered, and nothing has happened before it."""
    before = len(phone.read)
    # Two messages with the same words in the same second would be the same message.
    await phone.say(f"/status {secrets.token_hex(4)}")
    await until(lambda: len(phone.read) > before)
    assert "wait for you" in phone.read[-1].text
    assert len(phone.read) == before + 1
    assert gateway.gateway.services.models.stopped is None


@pytest.fixture
def phone() -> NostrPhone:
    return NostrPhone()


def relay_of(gateway: ChannelGateway) -> str:
    return f"ws://localhost:{gateway.gateway.port}/relay"


@asynccontextmanager
async def connected(open_gateway: OpenGateway, phone: NostrPhone) -> AsyncIterator[ChannelGateway]:
    async with open_gateway(own_relay(phone)) as gateway:
        await gateway.gateway.context.service(MeshService).wait_open()
        async with phone.connected(relay_of(gateway)):
            yield gateway


@asynccontextmanager
async def paired(open_gateway: OpenGateway, phone: NostrPhone) -> AsyncIterator[ChannelGateway]:
    async with connected(open_gateway, phone) as gateway:
        await pair(gateway, phone)
        yield gateway


@pytest.fixture
async def gateway(open_gateway: OpenGateway, phone: NostrPhone) -> AsyncIterator[ChannelGateway]:
    async with paired(open_gateway, phone) as opened:
        yield opened


async def test_the_owner_is_told_asks_and_answers_as_in_every_channel(
    gateway: ChannelGateway, phone: NostrPhone
) -> None:
    row = await gateway.row("nostr")
    assert row.owner is not None
    assert (row.owner.sender, row.strangers) == (phone.npub, 0)
    session = await gateway.finish_turn("The roof is mended.", title="Mend the roof")
    told = await phone.hears("The roof is mended.")
    assert told.sender == phone.to
    assert told.text.startswith("Finished: Mend the roof\n│ The roof is mended.\n")
    assert told.text.endswith(f"/sessions?id={session}")
    # A request of an agent, answered as a reply to it.
    approval = await ask(gateway, make_request("touch file"))
    asked = await phone.hears("touch file")
    await until(lambda: gateway.service.outbox.find_sent("nostr", asked.id))
    sent = await phone.say("/deny", reply_to=asked.id)
    assert (await phone.hears("Denied.")).reply_to == sent
    assert state_of(gateway, approval) == "answered"
    await phone.say("/stop")
    await phone.hears("All agents are stopped")
    stopped = gateway.gateway.services.models.stopped
    assert stopped is not None
    assert stopped.who == "channel:nostr"


async def test_a_stranger_gets_no_answer_and_is_counted(gateway: ChannelGateway, phone: NostrPhone) -> None:
    stranger = NostrPhone()
    stranger.to = phone.to
    for text in ("hello", "/stop", "/pair AAAAA-AAAAA"):
        # Whoever may use the relay can pass on what others wrote.
        assert (await phone.publish(stranger.wrap(stranger.write(text))))[0]
    await counted(gateway, 3)
    await is_quiet(gateway, phone)
    assert await strangers(gateway) == 3


async def test_the_same_message_is_carried_out_once_however_often_it_is_sent(
    open_gateway: OpenGateway, phone: NostrPhone
) -> None:
    async with paired(open_gateway, phone) as gateway:
        rumor = phone.write("/status")
        once = phone.wrap(rumor)
        await phone.publish(once)
        await phone.hears("wait for you")
        for again in (once, phone.wrap(rumor), phone.wrap(rumor)):
            await phone.publish(again)
        await is_quiet(gateway, phone)
        seen = len(phone.read)
    # The relay has kept them, and the next process reads them all again.
    async with connected(open_gateway, phone) as gateway:
        await is_quiet(gateway, phone)
        assert len(phone.read) == seen + 1


async def test_what_the_owner_wrote_while_no_gateway_ran_is_carried_out_by_the_next(
    phone: NostrPhone, open_gateway: OpenGateway
) -> None:
    async with sdk_relay() as url:
        manifest = f'{CHANNELS}[mesh]\nmode = "peer"\nrelays = ["{url}"]\n'
        async with phone.connected(url):
            async with open_gateway(manifest) as gateway:
                await pair(gateway, phone)
            await phone.say("/status")
            async with open_gateway(manifest) as gateway:
                await phone.hears("wait for you")


async def test_a_message_of_before_the_channel_and_one_from_far_ahead_do_nothing(
    gateway: ChannelGateway, phone: NostrPhone
) -> None:
    await phone.say("/stop", at=int(time.time()) - 86_400)
    await phone.say("/stop", at=int(time.time()) + 86_400)
    await counted(gateway, 1)
    await is_quiet(gateway, phone)
    assert await strangers(gateway) == 1


async def test_a_message_that_comes_hours_late_is_told_and_not_carried_out(
    open_gateway: OpenGateway, phone: NostrPhone
) -> None:
    async with paired(open_gateway, phone) as gateway:
        home = gateway.gateway.services.home
    with Timeline(home.timeline) as timeline, timeline.transaction() as tx:
        # As if the channel had been added long ago.
        tx.execute("UPDATE channels_channel SET cursor = '1/'")
    async with connected(open_gateway, phone) as gateway:
        await phone.say("/status", at=int(time.time()) - 7200)
        await phone.hears("came too late")
        assert not any("wait for you" in text for text in phone.texts())


def forge(owner: NostrKey, liar: NostrKey, receiver: str, *, seal_author: str | None = None) -> dict[str, Any]:
    """A gift wrap whose rumor names the owner, in a seal of somebody else."""
    rumor = write_rumor(owner.public, receiver, "/stop")
    seal = sign_event(liar, 13, encrypt(liar.share_with(receiver), json.dumps(vars(rumor)))).as_json()
    if seal_author is not None:
        seal["pubkey"] = seal_author
    once = make_key()
    wrapped = encrypt(once.share_with(receiver), json.dumps(seal))
    return sign_event(once, 1059, wrapped, [["p", receiver]]).as_json()


async def test_nobody_can_speak_for_the_owner(gateway: ChannelGateway, phone: NostrPhone) -> None:
    owner, liar = read_secret_key(phone.keys.secret_key().to_hex()), make_key()
    me = sdk.PublicKey.parse(phone.to).to_hex()
    # A rumor with another author than its seal, and a seal that names another key than the one that signed it.
    for forged in (forge(owner, liar, me), forge(owner, liar, me, seal_author=owner.public)):
        assert (await phone.publish(forged))[0]
    # A true message of the owner to somebody else, handed on by who got it.
    to_liar = wrap_message(owner, liar.public, "/stop")
    seal = decrypt(liar.share_with(to_liar.pubkey), to_liar.content)
    once = make_key()
    handed = sign_event(once, 1059, encrypt(once.share_with(me), seal), [["p", me]])
    assert (await phone.publish(handed.as_json()))[0]
    # A true message whose wrap was changed on the way.
    true = phone.wrap(phone.write("/stop"))
    is_taken, reason = await phone.publish({**true, "content": true["content"][:-4] + "AAA="})
    assert (is_taken, reason.partition(":")[0]) == (False, "invalid")
    await is_quiet(gateway, phone)
    assert await strangers(gateway) == 0


@pytest.mark.parametrize("kind", [14, 15, 1, 7])
async def test_a_message_to_a_group_and_one_of_another_kind_are_no_orders(
    gateway: ChannelGateway, phone: NostrPhone, kind: int
) -> None:
    tags = [["p", make_key().public]] if kind == 14 else []
    await phone.say("/stop", tags=tags, kind=kind)
    await counted(gateway, 1)
    await is_quiet(gateway, phone)


async def test_a_neighbour_is_never_the_owner(gateway: ChannelGateway, phone: NostrPhone) -> None:
    mesh = await gateway.gateway.context.service(MeshService).wait_open()
    neighbour = NostrPhone()
    neighbour.to = phone.to
    mesh.neighbours.add(neighbour.public, "friend", url=None, did=None, grants=(), given=(), who="test")
    refused = await gateway.post("/nostr/pair", {"address": neighbour.npub}, status=400)
    assert refused["error"]["code"] == "channels.bad-address"
    code = (await gateway.post("/nostr/pair"))["code"]
    assert (await phone.publish(neighbour.wrap(neighbour.write(f"/pair {code}"))))[0]
    await until(lambda: any(code in one.content for one in mesh.relays.messages.list(10)))
    await is_quiet(gateway, phone)
    row = await gateway.row("nostr")
    assert row.owner is not None
    assert row.owner.sender == phone.npub


async def test_a_code_for_one_key_pairs_no_other(open_gateway: OpenGateway, phone: NostrPhone) -> None:
    async with connected(open_gateway, phone) as gateway:
        await add(gateway, phone)
        code = (await gateway.post("/nostr/pair", {"address": phone.npub}))["code"]
        thief = NostrPhone()
        thief.to = phone.to
        await phone.publish(thief.wrap(thief.write(f"/pair {code}")))
        await counted(gateway, 1)
        assert (await gateway.row("nostr")).owner is None
        await phone.say(f"/pair {code}")
        await phone.hears("paired with you")
        wrong = await gateway.post("/nostr/pair", {"address": "npub1wrong"}, status=400)
        assert wrong["error"]["code"] == "channels.bad-address"


async def test_without_a_mesh_the_channel_says_what_is_missing(open_gateway: OpenGateway) -> None:
    async with open_gateway(CHANNELS) as gateway:
        await gateway.post("", {"kind": "nostr"}, status=201)
        refused = await gateway.post("/nostr/pair", status=503)
        assert "[mesh]" in refused["error"]["message"]


async def test_what_no_relay_could_take_is_sent_once_when_one_is_back(
    open_gateway: OpenGateway, phone: NostrPhone
) -> None:
    with listen() as kept:
        port = kept.getsockname()[1]
    url = f"ws://127.0.0.1:{port}"
    manifest = f'{CHANNELS}[mesh]\nmode = "peer"\nrelays = ["{url}"]\n'
    async with open_gateway(manifest) as gateway:
        async with sdk_relay(port):
            mesh = await gateway.gateway.context.service(MeshService).wait_open()
            mesh.relays.refresh()
            async with phone.connected(url):
                await pair(gateway, phone)
        await until(lambda: any(one.state == "away" for one in mesh.relays.states()))
        await gateway.finish_turn("done", title="While it was away")

        async def is_away() -> bool:
            return (await gateway.row("nostr")).state == "away"

        await until(is_away)
        assert [one for one in mesh.relays.outbox.list(url) if one.kind == 1059] == []
        async with sdk_relay(port), phone.connected(url):
            mesh.relays.refresh()

            async def is_told() -> bool:
                delivery = gateway.service._deliveries.get("nostr")
                if delivery is not None:
                    delivery.retry_now()
                return any("While it was away" in text for text in phone.texts())

            await until(is_told)
            await until(lambda: gateway.service.outbox.count_waiting("nostr") == 0)
            await is_quiet(gateway, phone)
            assert sum("While it was away" in text for text in phone.texts()) == 1


async def test_clients_find_where_to_write(gateway: ChannelGateway, phone: NostrPhone) -> None:
    mesh = await gateway.gateway.context.service(MeshService).wait_open()
    (found,) = mesh.require_relay().store.find([NostrFilter(kinds=frozenset({10_050}))])
    listed = sdk.nip17_extract_relay_list(sdk.Event.from_json(json.dumps(found.as_json())))
    assert [str(url) for url in listed] == [relay_of(gateway)]
    assert found.pubkey == sdk.PublicKey.parse(phone.to).to_hex()
