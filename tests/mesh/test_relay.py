"""The relay of a Freehold and its connections to others: with our own client, with nostr-sdk, and with a relay of nostr-sdk."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nostr_sdk as sdk
import pytest
from tests.gateway.running_gateway import listen
from tests.mesh.freeholds import PEER, MeshFreehold, pair, running_mesh
from tests.support.condition import DEADLINE, until
from tests.support.nostr import sdk_relay
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from freehold.mesh.nostr.direct_message import wrap_message
from freehold.mesh.nostr.event import NostrEvent, sign_event
from freehold.mesh.nostr.filter import NostrFilter
from freehold.mesh.nostr.keys import NostrKey, make_key
from freehold.mesh.relay_store import RelayStore

RELAY = PEER + "[mesh.relay]\nenabled = true\n"


@pytest.fixture
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MeshFreehold]:
    async with running_mesh(tmp_path_factory.mktemp("home"), RELAY) as running:
        yield running


def relay_url(home: MeshFreehold) -> str:
    return f"ws://localhost:{home.gateway.port}/relay"


class Client:
    """A client that says what it wants and reads what it gets."""

    def __init__(self, socket: ClientConnection, url: str) -> None:
        self._socket = socket
        self._url = url
        self.challenge = ""

    async def send(self, *parts: object) -> None:
        await self._socket.send(json.dumps(parts))

    async def read(self, kind: str) -> list[Any]:
        """The next message of this kind."""
        async with asyncio.timeout(DEADLINE):
            while True:
                message: list[Any] = json.loads(await self._socket.recv())
                if message[0] == "AUTH":
                    self.challenge = message[1]
                if message[0] == kind:
                    return message

    async def authenticate(self, key: NostrKey, **changes: str) -> tuple[bool, str]:
        self.challenge = self.challenge or (await self.read("AUTH"))[1]
        tags = {"relay": self._url, "challenge": self.challenge, **changes}
        event = sign_event(key, 22242, "", list(tags.items()))
        await self.send("AUTH", event.as_json())
        _, _, is_taken, reason = await self.read("OK")
        return is_taken, reason

    async def publish(self, event: NostrEvent | dict[str, Any]) -> tuple[bool, str]:
        await self.send("EVENT", event if isinstance(event, dict) else event.as_json())
        _, _, is_taken, reason = await self.read("OK")
        return is_taken, reason

    async def flood(self, text: str, count: int) -> None:
        for _ in range(count):
            await self._socket.send(text)
        await self.read("NOTHING")

    async def find(self, *filters: dict[str, Any], name: str = "q") -> list[dict[str, Any]]:
        await self.send("REQ", name, *filters)
        found = []
        async with asyncio.timeout(DEADLINE):
            while True:
                message = json.loads(await self._socket.recv())
                if message[0] == "EVENT":
                    found.append(message[2])
                elif message[0] in ("EOSE", "CLOSED"):
                    return found


@asynccontextmanager
async def client_of(home: MeshFreehold, key: NostrKey | None = None) -> AsyncIterator[Client]:
    async with connect(relay_url(home), proxy=None, open_timeout=DEADLINE, max_size=None) as socket:
        client = Client(socket, relay_url(home))
        if key is not None:
            assert await client.authenticate(key) == (True, "")
        yield client


async def test_the_relay_describes_itself_and_names_nobody(home: MeshFreehold) -> None:
    answer = await home.gateway.http.get(
        "/relay", headers={"host": home.gateway.host, "accept": "application/nostr+json"}
    )
    found = answer.json()
    assert answer.headers["content-type"].startswith("application/nostr+json")
    assert {1, 11, 42} <= set(found["supported_nips"])
    assert found["limitation"]["auth_required"] is True
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


async def test_too_many_queries_are_refused(home: MeshFreehold) -> None:
    async with client_of(home, home.mesh.key) as client:
        for _ in range(60):
            await client.send("REQ", "q", {"kinds": [1]})
        assert (await client.read("CLOSED"))[2].startswith("rate-limited")


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


# Connections to relays


def with_relays(*urls: str, more: str = "") -> str:
    return f'[mesh]\nmode = "peer"\nrelays = {json.dumps(urls)}\n{more}'


async def messages_of(home: MeshFreehold) -> list[str]:
    return [one["content"] for one in await home.ask("GET", "/v1/mesh/messages")]


async def wait_for(home: MeshFreehold, *texts: str) -> None:
    async def is_there() -> bool:
        return sorted(await messages_of(home)) == sorted(texts)

    await until(is_there)


async def test_two_freeholds_write_to_each_other_over_a_foreign_relay_and_over_their_own(
    home: MeshFreehold, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with sdk_relay() as foreign:
        manifest = with_relays(foreign, relay_url(home))
        async with running_mesh(tmp_path_factory.mktemp("home"), manifest) as friend:
            await pair(home, friend)
            await friend.ask("POST", "/v1/mesh/neighbours/maker/messages", {"text": "hello home"})
            await wait_for(home, "hello home")
            await home.ask("POST", "/v1/mesh/neighbours/other/messages", {"text": "hello friend"})
            await wait_for(friend, "hello friend")
            async with running_mesh(tmp_path_factory.mktemp("home"), with_relays(foreign)) as third:
                await pair(friend, third)
                await third.ask("POST", "/v1/mesh/neighbours/maker/messages", {"text": "hello from the third"})
                await wait_for(friend, "hello friend", "hello from the third")
            status = await friend.ask("GET", "/v1/mesh")
            assert {one["url"]: one["state"] for one in status["relays"]} == {foreign: "ok", relay_url(home): "ok"}


async def test_the_relays_of_a_key_are_published_and_messages_go_where_it_reads(
    home: MeshFreehold, tmp_path: Path
) -> None:
    """NIP-65, and NIP-17 for direct messages. What a neighbour names is used, and nothing of strangers."""
    async with sdk_relay() as foreign, running_mesh(tmp_path, with_relays(foreign, relay_url(home))) as friend:
        await pair(home, friend)
        async with client_of(home, home.mesh.key) as client:

            async def is_listed() -> bool:
                found = await client.find({"kinds": [10_002, 10_050], "authors": [friend.mesh.key.public]})
                return len(found) == 2 and all(foreign in str(one["tags"]) for one in found)

            await until(is_listed)
            # The neighbour reads at one of them only.
            tags = [["r", relay_url(home)], ["r", foreign, "write"]]
            await client.publish(sign_event(home.mesh.key, 10_002, "", tags, created_at=int(time.time()) + 5))
        await until(lambda: home.mesh.key.public in friend.mesh.relays._lists)
        sent: list[str] = []
        add = friend.mesh.relays.outbox.add
        friend.mesh.relays.outbox.add = lambda relay, event: (sent.append(relay), add(relay, event))[1]  # type: ignore[method-assign, func-returns-value]
        await friend.ask("POST", "/v1/mesh/neighbours/maker/messages", {"text": "only where you read"})
        await wait_for(home, "only where you read")
        assert sent == [relay_url(home)]


async def test_when_a_relay_was_last_seen_is_kept_over_a_restart(tmp_path: Path) -> None:
    async def seen_at(friend: MeshFreehold) -> object:
        found = (await friend.ask("GET", "/v1/mesh"))["relays"]
        return found[0]["seen"] if found else None

    async with sdk_relay() as foreign, running_mesh(tmp_path, with_relays(foreign)) as friend:
        await until(lambda: seen_at(friend))
    async with running_mesh(tmp_path, with_relays(foreign)) as friend:
        await until(lambda: any(one.state == "away" for one in friend.mesh.relays.states()))
        assert await seen_at(friend) is not None


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


async def test_a_clock_that_is_ten_minutes_wrong_is_corrected_by_what_neighbours_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relay says only that it refuses. The clocks of neighbours are known from signed requests."""
    wrong = SimpleNamespace(time=lambda: time.time() + 600, monotonic=time.monotonic)
    monkeypatch.setattr("freehold.mesh.relay_client.time", wrong)
    async with sdk_relay() as foreign, running_mesh(tmp_path, with_relays(foreign)) as home:
        other = make_key()
        home.mesh.neighbours.add(other.public, "other", url=None, did=None, grants=(), given=(), who="test")
        await home.ask("POST", "/v1/mesh/neighbours/other/messages", {"text": "hello"})
        await until(lambda: any("too old" in str(one.error) for one in home.mesh.relays.states()))
        assert home.mesh.relays.outbox.count()[foreign] > 0
        home.mesh.peers._offsets["https://neighbour.example.com"] = -600
        home.mesh.relays.refresh()
        await until(lambda: home.mesh.relays.outbox.count().get(foreign, 0) == 0)


async def test_what_a_relay_could_not_take_is_sent_when_it_is_back_even_after_a_restart(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with listen() as kept:
        port = kept.getsockname()[1]
    path, url = tmp_path_factory.mktemp("home"), f"ws://127.0.0.1:{port}"
    other = make_key()
    async with running_mesh(path, with_relays(url)) as home:
        home.mesh.neighbours.add(other.public, "other", url=None, did=None, grants=(), given=(), who="test")
        await home.ask("POST", "/v1/mesh/neighbours/other/messages", {"text": "kept"})
        await until(lambda: any(one.state == "away" for one in home.mesh.relays.states()))
        health = (await home.gateway.http.get("/health", headers=home.owner)).json()
        state = next(one for one in health["components"] if one["name"] == "mesh")
        assert (state["state"], url in state["last_error"]) == ("degraded", True)
    received: list[int] = []

    async def take(socket: ServerConnection) -> None:
        async for text in socket:
            message = json.loads(text)
            if message[0] == "EVENT":
                received.append(message[1]["kind"])
                await socket.send(json.dumps(["OK", message[1]["id"], True, ""]))

    async with serve(take, "127.0.0.1", port), running_mesh(path, with_relays(url)) as home:
        await until(lambda: 1059 in received)
        await until(lambda: home.mesh.relays.outbox.count() == {})


async def test_a_relay_that_repeats_and_reorders_and_forges_changes_nothing(tmp_path: Path) -> None:
    friend, stranger = make_key(), make_key()
    events: list[dict[str, Any]] = []
    over = asyncio.Event()

    async def misbehave(socket: ServerConnection) -> None:
        async for text in socket:
            message = json.loads(text)
            if message[0] == "REQ":
                for one in [*reversed(events), *events, *events]:
                    await socket.send(json.dumps(["EVENT", message[1], one]))
                for nonsense in (
                    "x",
                    "[]",
                    '["EVENT"]',
                    '["EVENT", "freehold", {"id": 1}]',
                    '["OK", 1]',
                    '["AUTH", 1]',
                ):
                    await socket.send(nonsense)
                await socket.send(json.dumps(["EOSE", message[1]]))
                over.set()

    async with serve(misbehave, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with running_mesh(tmp_path, with_relays(f"ws://127.0.0.1:{port}")) as home:
            me = home.mesh.key.public
            true = [wrap_message(friend, me, f"message {number}") for number in range(3)]
            forged = {**wrap_message(friend, me, "forged").as_json(), "sig": true[0].sig}
            events += [one.as_json() for one in true] + [
                forged,
                wrap_message(stranger, me, "from a stranger").as_json(),
            ]
            home.mesh.neighbours.add(friend.public, "friend", url=None, did=None, grants=(), given=(), who="test")
            over.clear()
            home.mesh.relays.refresh()
            await asyncio.wait_for(over.wait(), DEADLINE)
            await wait_for(home, "message 0", "message 1", "message 2")


async def test_a_relay_that_floods_is_left_and_the_rest_goes_on(tmp_path: Path) -> None:
    async def flood(socket: ServerConnection) -> None:
        event = json.dumps(["EVENT", "freehold", sign_event(make_key(), 1, "x").as_json()])
        while True:
            await socket.send(event)
            await asyncio.sleep(0)

    async with serve(flood, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with running_mesh(tmp_path, with_relays(f"ws://127.0.0.1:{port}")) as home:
            await until(lambda: any(one.error == "it sends too much" for one in home.mesh.relays.states()))
            assert (await home.gateway.http.get("/livez")).status_code == 200


async def test_a_relay_that_withholds_does_not_stop_what_another_delivers(home: MeshFreehold, tmp_path: Path) -> None:
    async def swallow(socket: ServerConnection) -> None:
        async for _ in socket:
            pass

    async with serve(swallow, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        manifest = with_relays(f"ws://127.0.0.1:{port}", relay_url(home))
        async with running_mesh(tmp_path, manifest) as friend:
            await pair(home, friend)
            await friend.ask("POST", "/v1/mesh/neighbours/maker/messages", {"text": "by the other way"})
            await wait_for(home, "by the other way")
            waiting = {one["url"]: one["waiting"] for one in (await friend.ask("GET", "/v1/mesh"))["relays"]}
            assert waiting[f"ws://127.0.0.1:{port}"] > 0


async def test_chosen_events_are_told_to_neighbours_without_words(home: MeshFreehold, tmp_path: Path) -> None:
    manifest = with_relays(relay_url(home), more='publish = ["turn.started", "mesh.key_replaced"]\n')
    async with running_mesh(tmp_path, manifest) as friend:
        await pair(home, friend)
        timeline = friend.gateway.services.timeline
        timeline.append("turn.started", {"session": "abc", "prompt": "my secret plan"})
        timeline.append("session.opened", {"session": "abc"})

        async def is_told() -> bool:
            return bool(await messages_of(home))

        await until(is_told)
        found = await home.ask("GET", "/v1/mesh/messages")
        assert [(one["kind"], one["neighbour"]) for one in found] == [("event", "other")]
        said = json.loads(found[0]["content"])
        assert (said["kind"], said["data"]) == ("turn.started", {"session": "abc"})


async def test_the_mesh_holds_back_readiness_only_when_it_is_required(tmp_path_factory: pytest.TempPathFactory) -> None:
    for is_required in (False, True):
        manifest = with_relays("ws://127.0.0.1:9", more=f"required = {str(is_required).lower()}\n")
        async with running_mesh(tmp_path_factory.mktemp("home"), manifest) as home:
            await until(lambda: any(one.state == "away" for one in home.mesh.relays.states()))
            missing = (await home.gateway.http.get("/ready", headers=home.owner)).json()["missing"]
            assert ("mesh" in [one["name"] for one in missing]) == is_required
