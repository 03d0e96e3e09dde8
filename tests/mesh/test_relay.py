"""The relay of a Freehold, with our own client and with nostr-sdk: who may use it, what it takes, and what it keeps."""

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing
from datetime import timedelta
from pathlib import Path

import nostr_sdk as sdk
import pytest
from tests.mesh.freeholds import MeshFreehold, pair, running_mesh
from tests.mesh.relays import (
    RELAY,
    client_of,
    relay_url,
)
from tests.support.condition import DEADLINE, until
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from freehold.gateway.rate_limit import RateLimit
from freehold.mesh import relay_server, relay_store
from freehold.mesh.nostr.direct_message import wrap_message
from freehold.mesh.nostr.event import sign_event
from freehold.mesh.nostr.filter import MAX_LIMIT, NostrFilter
from freehold.mesh.nostr.keys import make_key
from freehold.mesh.relay_store import RelayStore


@pytest.fixture
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MeshFreehold]:
    async with running_mesh(tmp_path_factory.mktemp("home"), RELAY) as running:
        yield running


async def test_the_relay_describes_itself_and_names_nobody(home: MeshFreehold) -> None:
    answer = await home.gateway.http.get(
        "/relay", headers={"host": home.gateway.host, "accept": "application/nostr+json"}
    )
    found = answer.json()
    assert answer.headers["content-type"].startswith("application/nostr+json")
    assert {1, 11, 42} <= set(found["supported_nips"])
    assert "software" not in found  # that would have to be an address
    limits = found["limitation"]
    assert (limits["auth_required"], limits["restricted_writes"]) == (True, True)
    assert (limits["max_limit"], limits["max_message_length"]) == (MAX_LIMIT, relay_server.MAX_MESSAGE)
    assert home.mesh.key.public not in answer.text


async def test_only_the_owner_and_paired_neighbours_use_it(home: MeshFreehold, tmp_path: Path) -> None:
    stranger = make_key()
    async with client_of(home) as client:
        await client.send("REQ", "q", {})
        assert (await client.read("CLOSED"))[2].startswith("auth-required")
        assert (await client.publish(sign_event(stranger, 1, "x")))[1].startswith("auth-required")
        assert (await client.authenticate(stranger))[1].startswith("restricted")
        assert await client.find({}) == []
    async with running_mesh(tmp_path) as friend:
        await pair(home, friend)
        key = friend.mesh.key
        async with client_of(home) as client:
            for wrong in ({"challenge": "x"}, {"relay": "ws://other.example/relay"}):
                assert (await client.authenticate(key, **wrong))[1].startswith("invalid")
            assert await client.authenticate(key) == (True, "")
            assert await client.publish(sign_event(key, 1, "hello")) == (True, "")
            assert [one["content"] for one in await client.find({"kinds": [1]})] == ["hello"]


async def test_an_evicted_neighbour_loses_its_connection_to_the_relay(home: MeshFreehold, tmp_path: Path) -> None:
    async with running_mesh(tmp_path) as friend:
        await pair(home, friend)
        async with client_of(home, friend.mesh.key) as client:
            # As another process would do it.
            home.gateway.services.tokens.revoke("neighbour-other")
            async with asyncio.timeout(DEADLINE):
                with pytest.raises(ConnectionClosed) as closed:
                    await client.read("NOTHING")
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008


async def test_what_is_not_right_is_refused_with_the_reason(home: MeshFreehold) -> None:
    key = home.mesh.key
    async with client_of(home, key) as client:
        event = sign_event(key, 1, "x")
        assert await client.publish(event) == (True, "")
        assert (await client.publish(event))[1].startswith("duplicate")
        for wrong in (
            {**event.as_json(), "content": "y"},
            {**sign_event(key, 1, "z").as_json(), "sig": event.sig},
            sign_event(key, 1, "later", created_at=int(time.time()) + 86_400).as_json(),
            {"id": event.id},
        ):
            is_taken, reason = await client.publish(wrong)
            assert (is_taken, reason.partition(":")[0]) == (False, "invalid"), wrong
        assert (await client.publish(sign_event(make_key(), 1, "x")))[1].startswith("restricted")
        for nonsense in ("x", "[]", "{}", '["EVENT"]', '["REQ", "q"]', "[" * 5000):
            await client._socket.send(nonsense)
            assert (await client.read("NOTICE"))[1].startswith("invalid")
        await client.send("REQ", "q", {"search": "x"})
        assert (await client.read("CLOSED"))[2].startswith("invalid")


async def test_a_direct_message_is_shown_to_its_receiver_only(home: MeshFreehold, tmp_path: Path) -> None:
    async with running_mesh(tmp_path) as friend:
        await pair(home, friend)
        wrap = wrap_message(friend.mesh.key, home.mesh.key.public, "for you")
        async with client_of(home, friend.mesh.key) as sender, client_of(home, home.mesh.key) as receiver:
            assert await receiver.find({"kinds": [1059]}, name="live") == []
            assert await sender.publish(wrap) == (True, "")
            assert (await receiver.read("EVENT"))[2]["id"] == wrap.id
            assert await sender.find({"kinds": [1059]}) == []
            assert len(await receiver.find({"kinds": [1059]})) == 1


async def test_an_event_that_is_too_large_ends_the_connection_and_nothing_else(home: MeshFreehold) -> None:
    async with client_of(home, home.mesh.key) as client:
        with pytest.raises(ConnectionClosed):
            await client.publish(sign_event(home.mesh.key, 1, "x" * 65_000, [["t", "y" * 65_000]]))
    async with client_of(home, home.mesh.key) as client:
        assert await client.find({"kinds": [1]}) == []


async def test_a_flood_is_dropped_and_its_sender_is_closed(home: MeshFreehold) -> None:
    async with client_of(home, home.mesh.key) as flooder, client_of(home, home.mesh.key) as other:
        text = json.dumps(["EVENT", sign_event(home.mesh.key, 1, "x").as_json()])
        with pytest.raises(ConnectionClosed):
            await flooder.flood(text, 10_000)
        assert await other.publish(sign_event(home.mesh.key, 1, "still here")) == (True, "")
        assert len(await other.find({"kinds": [1]})) == 2


async def test_strangers_that_wait_and_many_connections_of_one_key_leave_room_for_others(home: MeshFreehold) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(8):
            stranger = await stack.enter_async_context(client_of(home))
            await stranger.read("AUTH")
        late = await stack.enter_async_context(client_of(home))
        with pytest.raises(ConnectionClosed):
            await late.read("AUTH")
    async with AsyncExitStack() as stack:
        await until(lambda: len(home.mesh.require_relay().server) == 0)
        for _ in range(8):
            await stack.enter_async_context(client_of(home, home.mesh.key))
        ninth = await stack.enter_async_context(client_of(home))
        assert (await ninth.authenticate(home.mesh.key))[1].startswith("rate-limited")


async def test_one_connection_has_few_keys(tmp_path: Path) -> None:
    async with running_mesh(tmp_path, RELAY + 'readers = "anyone"\n') as home, client_of(home) as client:
        answers = [await client.authenticate(make_key()) for _ in range(relay_server.MAX_KEYS + 1)]
        assert [is_taken for is_taken, _ in answers] == [True] * relay_server.MAX_KEYS + [False]
        assert answers[-1][1].startswith("rate-limited")


async def test_too_many_queries_are_refused(home: MeshFreehold, monkeypatch: pytest.MonkeyPatch) -> None:
    # However slow this machine is, it does not gain more queries meanwhile.
    monkeypatch.setattr(relay_server, "QUERIES_PER_SECOND", 0.001)
    async with client_of(home, home.mesh.key) as client:
        for _ in range(relay_server.QUERY_BURST + 1):
            await client.send("REQ", "q", {"kinds": [1]})
        assert (await client.read("CLOSED"))[2].startswith("rate-limited")


async def test_stored_events_larger_than_what_may_wait_are_told_to_their_end(home: MeshFreehold) -> None:
    """Who is sent many large messages must not look like a slow reader, and lose the connection each time."""
    store, key, now = home.mesh.require_relay().store, make_key(), int(time.time())
    home.mesh.neighbours.add(key.public, "reader", url=None, did=None, grants=(), given=(), who="test")
    sent = [
        sign_event(
            make_key(), 1059, f"{number}" * (30_000 // len(f"{number}")), [("p", key.public)], created_at=now - number
        )
        for number in range(300)
    ]
    for one in sent:
        store.add(one, "somebody")
    found: dict[str, int] = {}
    async with client_of(home, key) as client:
        until_then = now
        while page := await client.find({"kinds": [1059], "until": until_then}):
            found.update((one["id"], one["created_at"]) for one in page)
            until_then = min(one["created_at"] for one in page) - 1
    assert found.keys() == {one.id for one in sent}


async def test_one_connection_has_a_bounded_number_of_filters(home: MeshFreehold) -> None:
    async with client_of(home, home.mesh.key) as client:
        for number in range(relay_server.MAX_FILTERS_EACH // relay_server.MAX_FILTERS):
            await client.find(*({"kinds": [kind]} for kind in range(relay_server.MAX_FILTERS)), name=f"q{number}")
        await client.send("REQ", "more", {"kinds": [1]})
        assert (await client.read("CLOSED"))[1:] == ["more", "error: too many filters"]
        # One that is replaced does not count.
        await client.send("REQ", "q0", {"kinds": [1]})
        assert (await client.read("EOSE"))[1] == "q0"


async def test_the_events_of_one_key_are_bounded_over_all_of_its_connections(home: MeshFreehold) -> None:
    key = home.mesh.key
    home.mesh.require_relay().server.rates = RateLimit(0.001, 3)
    answers = []
    for number in range(5):
        async with client_of(home, key) as client:
            answers.append(await client.publish(sign_event(key, 1, str(number))))
    assert [is_taken for is_taken, _ in answers] == [True] * 3 + [False] * 2
    assert answers[-1][1].startswith("rate-limited")


@pytest.mark.parametrize("kind", [4, 1059, 21_059])
async def test_a_direct_message_of_any_kind_is_shown_to_nobody_else(home: MeshFreehold, kind: int) -> None:
    keys = {name: make_key() for name in ("author", "receiver", "nosy")}
    for name, key in keys.items():
        home.mesh.neighbours.add(key.public, name, url=None, did=None, grants=(), given=(), who="test")
    event = sign_event(keys["author"], kind, "for you", [("p", keys["receiver"].public)])
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(client_of(home, key)) for name, key in keys.items()}
        for client in clients.values():
            await client.find({"kinds": [kind, 1]}, name="live")
        assert await clients["author"].publish(event) == (True, "")
        assert await clients["author"].publish(sign_event(keys["author"], 1, "to all")) == (True, "")
        assert (await clients["receiver"].read("EVENT"))[2]["id"] == event.id
        assert (await clients["nosy"].read("EVENT"))[2]["content"] == "to all"
        assert await clients["nosy"].find({"kinds": [kind]}) == []


async def test_strangers_of_one_network_have_no_more_places_than_one_address(tmp_path: Path) -> None:
    """Whoever has one address of IPv6 has all of its network."""
    manifest = f'trusted_proxies = ["127.0.0.1"]\n{RELAY}'
    async with running_mesh(tmp_path, manifest) as home, AsyncExitStack() as stack:

        async def knock(address: str) -> ClientConnection:
            headers = {"x-forwarded-for": address, "x-forwarded-proto": "https"}
            waiting = connect(relay_url(home), proxy=None, open_timeout=DEADLINE, additional_headers=headers)
            return await stack.enter_async_context(waiting)

        for number in range(relay_server.MAX_STRANGERS_EACH):
            assert "AUTH" in await (await knock(f"2001:db8::{number + 1}")).recv()
        with pytest.raises(ConnectionClosed):
            await (await knock("2001:db8::ffff")).recv()
        assert "AUTH" in await (await knock("2001:db8:1::1")).recv()


async def test_another_client_uses_the_relay(home: MeshFreehold) -> None:
    sdk.nostr_sdk.uniffi_set_event_loop(asyncio.get_running_loop())
    keys = sdk.Keys.parse(home.mesh.key.export())
    client = sdk.ClientBuilder().authenticator(sdk.SignerAuthenticator(keys)).build()
    await client.add_relay(sdk.RelayUrl.parse(relay_url(home)))
    try:
        event = sdk.Event.from_json(json.dumps(sign_event(home.mesh.key, 1, "from another client").as_json()))

        async def is_there() -> bool:
            await client.send_event(event)
            async with client_of(home, home.mesh.key) as own:
                return [one["content"] for one in await own.find({"kinds": [1]})] == ["from another client"]

        await client.connect(and_wait=timedelta(seconds=10))
        await until(is_there)
    finally:
        await client.shutdown()


def test_events_are_replaced_and_bounded(tmp_path: Path) -> None:
    key = make_key()
    store = RelayStore(tmp_path / "relay.db", 5, 1 << 20)
    old, new = (sign_event(key, 30078, text, [["d", "state"]], created_at=at) for text, at in (("1", 100), ("2", 200)))
    assert (store.add(new), store.add(old), store.add(new)) == (True, False, False)
    assert [one.content for one in store.find([NostrFilter()])] == ["2"]
    for place in range(9):
        store.add(sign_event(key, 1, str(place), created_at=1000 - place))
    assert [one.content for one in store.find([NostrFilter()])] == ["4", "5", "6", "7", "8"]
    store.close()
    again = RelayStore(tmp_path / "relay.db", 5, 1 << 20)
    assert len(again.find([NostrFilter(kinds=frozenset({1}))])) == 5
    again.close()


def test_tags_and_large_letters_count_for_what_they_take(tmp_path: Path) -> None:
    """Otherwise short tags and letters of four bytes would take many times what the owner allows."""
    key, store = make_key(), RelayStore(tmp_path / "relay.db", 1_000, 400_000)
    for number in range(20):
        store.add(sign_event(key, 1, "x", [["t", f"{number}-{place}"] for place in range(1_000)]))
        store.add(sign_event(key, 7, "\U0001f642" * 25_000, created_at=1_000 + number))
    assert 1 <= len(store.find([NostrFilter()])) <= 4
    store.close()
    assert (tmp_path / "relay.db").stat().st_size < 1_000_000


def test_what_is_read_at_once_is_bounded_and_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_store, "MAX_ANSWER", 6_000)
    key, store = make_key(), RelayStore(tmp_path / "relay.db", 100, 1 << 20)
    for number in range(20):
        store.add(sign_event(key, number % 2, "x" * 1_000, created_at=1_000 + number))
    filters = [NostrFilter(kinds=frozenset({kind})) for kind in (0, 1)]
    assert [one.created_at for one in store.find(filters[1:])] == [1019, 1017, 1015, 1013, 1011]
    assert [one.created_at for one in store.find([filters[1], NostrFilter()])] == [1019, 1018, 1017, 1015]
    # One that is larger than all of it is told, too.
    store.add(sign_event(key, 1, "y" * 7_000, created_at=2_000))
    assert [one.created_at for one in store.find(filters[1:])] == [2_000]
    store.close()


def test_who_fills_the_relay_pushes_out_nobody_elses_messages(tmp_path: Path) -> None:
    store = RelayStore(tmp_path / "relay.db", 10, 60_000)
    hostile, friend = make_key(), make_key()
    for _ in range(3):
        store.add(wrap_message(friend, friend.public, "kept"), friend.public)
    for number in range(100):
        store.add(sign_event(hostile, 1, str(number)), hostile.public)
    kept = store.find([NostrFilter()])
    assert sum(one.kind == 1059 for one in kept) == 3
    assert sorted(int(one.content) for one in kept if one.kind == 1) == list(range(93, 100))
    store.add(sign_event(hostile, 1, "x" * 40_000), hostile.public)
    store.add(sign_event(hostile, 1, "y" * 40_000), hostile.public)
    assert sum(one.kind == 1059 for one in store.find([NostrFilter()])) == 3
    store.close()


def test_strangers_with_many_keys_push_out_nothing_of_the_owner_and_of_neighbours(tmp_path: Path) -> None:
    """Who takes most of the place is the owner here, and each stranger has one event."""
    owner, neighbour = make_key(), make_key()
    store = RelayStore(tmp_path / "relay.db", 10, 60_000, lambda: {owner.public, neighbour.public})
    kept = [sign_event(owner, 1, str(number)) for number in range(5)] + [sign_event(neighbour, 1, "neighbour")]
    for one in kept:
        store.add(one, one.pubkey)
    own = sign_event(make_key(), 1, "of this Freehold")
    store.add(own)
    for number in range(100):
        stranger = sign_event(make_key(), 1, f"stranger {number}")
        store.add(stranger, stranger.pubkey)
    found = store.find([NostrFilter()])
    assert {one.id for one in [*kept, own]} <= {one.id for one in found}
    assert len(found) == 10
    # Among those who are known, who takes most loses its oldest, when no stranger is left.
    for number in range(20):
        store.add(sign_event(owner, 1, f"more {number}"), owner.public)
    contents = {one.content for one in store.find([NostrFilter()])}
    assert {"neighbour", "of this Freehold", "more 19"} <= contents
    assert len(contents) == 10
    store.close()


def test_a_relay_of_the_version_before_keeps_its_events(tmp_path: Path) -> None:
    path = tmp_path / "relay.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(f"{relay_store._SCHEMA} PRAGMA user_version = 1;")
        event = sign_event(make_key(), 1, "from before")
        values = (event.id, event.pubkey, event.created_at, 1, None, 10, json.dumps(event.as_json()))
        database.execute(
            "INSERT INTO event (id, pubkey, created_at, kind, address, size, body) VALUES (?, ?, ?, ?, ?, ?, ?)", values
        )
        database.commit()
    store = RelayStore(path, 5, 1 << 20)
    assert [one.content for one in store.find([NostrFilter()])] == ["from before"]
    for number in range(5):
        store.add(sign_event(make_key(), 1, str(number)))
    assert sorted(one.content for one in store.find([NostrFilter()])) == ["0", "1", "2", "3", "4"]
    store.close()


async def test_a_relay_for_anyone_still_asks_for_a_key(tmp_path: Path) -> None:
    async with running_mesh(tmp_path, RELAY + 'readers = "anyone"\nmax_connections = 2\n') as home:
        stranger = make_key()
        async with client_of(home) as client:
            refused = await client.publish(sign_event(stranger, 1, "before"))
            assert (refused[0], refused[1].startswith("auth-required")) == (False, True)
        async with client_of(home, stranger) as client, client_of(home, make_key()) as other:
            assert await client.publish(sign_event(stranger, 1, "after")) == (True, "")
            assert [one["content"] for one in await other.find({"kinds": [1]})] == ["after"]
            # There is room for two.
            async with client_of(home) as third:
                with pytest.raises(ConnectionClosed):
                    await third.read("AUTH")
