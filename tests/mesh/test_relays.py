"""Connections to relays, foreign ones and those of other Freeholds: what is sent, read and kept."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.gateway.running_gateway import listen
from tests.mesh.freeholds import MeshFreehold, pair, running_mesh
from tests.mesh.relays import (
    RELAY,
    client_of,
    messages_of,
    relay_url,
    wait_for,
    with_relays,
)
from tests.support.condition import until
from tests.support.nostr import sdk_relay
from websockets.asyncio.server import ServerConnection, serve

from freehold.mesh import direct_inbox, messages, relay_client, relay_server
from freehold.mesh.direct_inbox import DirectInbox
from freehold.mesh.nostr.direct_message import write_rumor
from freehold.mesh.nostr.event import MAX_TIME, sign_event
from freehold.mesh.nostr.filter import NostrFilter
from freehold.mesh.nostr.keys import make_key
from freehold.mesh.published_event import write_published_event
from freehold.mesh.relay_client import RelayClient, RelayFailed, RelayHandlers
from freehold.mesh.schema import ROOM, STEPS
from freehold.timeline import Timeline


@pytest.fixture
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MeshFreehold]:
    async with running_mesh(tmp_path_factory.mktemp("home"), RELAY) as running:
        yield running


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


async def test_health_tells_each_relay_and_when_it_was_seen_to_the_owner_only(tmp_path: Path) -> None:
    async with sdk_relay() as foreign, running_mesh(tmp_path, with_relays(foreign, "ws://127.0.0.1:9")) as home:

        async def relays_of(headers: dict[str, str]) -> list[dict[str, Any]]:
            found = (await home.gateway.http.get("/health", headers=headers)).json()["components"]
            parts: list[dict[str, Any]] = next(one["parts"] for one in found if one["name"] == "mesh")
            return parts

        async def are_known() -> bool:
            errors = [one["error"] for one in await relays_of(home.owner)]
            return errors[:1] == [None] and errors[1:] != ["not connected yet"]

        await until(are_known)
        first, second = await relays_of(home.owner)
        assert (first["name"], first["state"], first["error"]) == (foreign, "ok", None)
        assert datetime.fromisoformat(first["seen"]) <= datetime.now(UTC)
        assert (second["name"], second["state"], second["seen"]) == ("ws://127.0.0.1:9", "degraded", None)
        assert await relays_of({}) == []


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


async def test_what_is_dated_ahead_of_the_clock_of_a_relay_waits_and_holds_up_nothing(
    home: MeshFreehold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the clock of the sender is ahead. It is sent when its time has come there, and says so until then."""
    monkeypatch.setattr(relay_client, "HELD_PAUSE", 0.1)
    url = relay_url(home)
    async with running_mesh(tmp_path, with_relays(url)) as friend:
        await pair(home, friend)
        relays = friend.mesh.relays
        late = [
            sign_event(friend.mesh.key, 1, str(ahead), created_at=int(time.time()) + ahead) for ahead in (5_000, 4_000)
        ]
        for event in late:
            await relays.publish(event)
        await friend.ask("POST", "/v1/mesh/neighbours/maker/messages", {"text": "behind it"})
        await wait_for(home, "behind it")
        await until(lambda: relays.outbox.count() == {url: 2})

        async def health() -> dict[str, Any]:
            found = (await friend.gateway.http.get("/health", headers=friend.owner)).json()["components"]
            state: dict[str, Any] = next(one for one in found if one["name"] == "mesh")
            return state

        async def is_told() -> bool:
            found = await health()
            return found["state"] == "degraded" and "dated ahead" in found["last_error"]

        async def is_well() -> bool:
            return bool((await health())["state"] == "ok")

        await until(is_told)
        monkeypatch.setattr(relay_server, "MAX_AHEAD", 4_500)
        await until(lambda: relays.outbox.count() == {url: 1})
        assert await is_told()
        monkeypatch.setattr(relay_server, "MAX_AHEAD", 5_500)
        await until(lambda: relays.outbox.count() == {})
        kept = home.mesh.require_relay().store.find([NostrFilter(kinds=frozenset({1}))])
        assert sorted(one.id for one in kept) == sorted(one.id for one in late)
        await until(is_well)


async def test_more_neighbours_than_one_filter_names_are_read_at_our_own_relay(
    home: MeshFreehold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a filter is refused, and one with all keys would be longer than a message may be."""
    monkeypatch.setattr(relay_client, "LATER_PAUSE", 0.1)
    async with running_mesh(tmp_path, with_relays(relay_url(home))) as friend:
        await pair(home, friend)
        known, server = friend.mesh.neighbours, home.mesh.require_relay().server
        maker = known.get("maker")
        keys = [make_key() for _ in range(1_200)]
        for number, key in enumerate(keys):
            await server.add(sign_event(key, 10_002, "", [["r", f"wss://{number}.example.com"]]))
            known._known[key.public] = replace(maker, pubkey=key.public, name=f"n{number}")
        friend.mesh.note_changed_neighbours()
        await until(lambda: {key.public for key in keys} <= friend.mesh.relays._lists.keys())
        # What comes later is told as well, and messages go on.
        await server.add(sign_event(keys[-1], 10_002, "", [["r", "wss://other"]], created_at=int(time.time()) + 5))
        await until(lambda: friend.mesh.relays._lists[keys[-1].public].urls == {"wss://other"})
        await home.ask("POST", "/v1/mesh/neighbours/other/messages", {"text": "hello"})
        await wait_for(friend, "hello")
        assert [one.state for one in friend.mesh.relays.states()] == ["ok"]
        filters = friend.mesh.relays._filters("")
        assert all(len(json.dumps(["REQ", "name", one])) < relay_server.MAX_MESSAGE for one in filters)


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


@pytest.mark.parametrize(
    ("steady", "news", "expected"),
    [
        (10.0, 0, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]),
        (10.0, 3, [2, 4, 8, 2, 4, 8, 16, 32, 64, 128]),
        (-1.0, 0, [1] * 10),
    ],
)
async def test_a_relay_that_is_away_is_tried_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steady: float, news: int, expected: list[float]
) -> None:
    """From the begin again when the neighbours have changed meanwhile, and after a connection that has lasted."""
    pauses: list[float] = []
    notes: list[str | None] = []

    async def fail(_: RelayClient) -> None:
        raise RelayFailed("nothing listens there")

    async def pause(_: RelayClient, seconds: float) -> bool:
        pauses.append(seconds)
        if len(pauses) == 10:
            raise asyncio.CancelledError
        return len(pauses) == news

    async def note(_url: str, _state: str, error: str | None) -> None:
        notes.append(error)

    monkeypatch.setattr(RelayClient, "_connect", fail)
    monkeypatch.setattr(RelayClient, "_pause", pause)
    monkeypatch.setattr(relay_client, "STEADY", steady)
    monkeypatch.setattr("random.random", lambda: 1.0)
    async with running_mesh(tmp_path) as home:
        relays = home.mesh.relays
        handlers = RelayHandlers(
            make_key,
            relays._filters,
            relays.receive,
            note,
            relays._note_caught_up,
            relays._note_answer,
            relays._complain,
        )
        with pytest.raises(asyncio.CancelledError):
            await RelayClient("ws://away.example", relays.outbox, handlers).run()
    assert pauses == expected
    assert notes == ["nothing listens there"] * 10


async def test_an_event_that_is_too_large_for_a_relay_holds_up_nothing_behind_it(tmp_path: Path) -> None:
    received: list[str] = []

    async def take(socket: ServerConnection) -> None:
        async for text in socket:
            message = json.loads(text)
            if message[0] == "EVENT":
                received.append(message[1]["id"])
                await socket.send(json.dumps(["OK", message[1]["id"], True, ""]))

    other = make_key()
    async with serve(take, "127.0.0.1", 0, max_size=8_000) as server:
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        async with running_mesh(tmp_path, with_relays(url)) as home:
            home.mesh.neighbours.add(other.public, "other", url=None, did=None, grants=(), given=(), who="test")
            await until(lambda: home.mesh.relays.outbox.count() == {})
            large, small = [
                (await home.ask("POST", "/v1/mesh/neighbours/other/messages", {"text": text}))["id"]
                for text in ("x" * 10_000, "small")
            ]
            await until(lambda: home.mesh.relays.outbox.count() == {})
            assert (large in received, small in received) == (False, True)


async def test_a_message_that_no_relay_would_take_is_refused_at_once(home: MeshFreehold) -> None:
    """Encrypted twice, it grows. What is accepted fits into one message of our own relay, whatever its letters are."""
    key = make_key()
    home.mesh.neighbours.add(key.public, "other", url=None, did=None, grants=(), given=(), who="test")
    path = "/v1/mesh/neighbours/other/messages"
    refused = await home.ask("POST", path, {"text": "\U0001f642" * 16_000}, status=413)
    assert refused["error"]["code"] == "mesh.too-large"
    for text in ("\U0001f642" * 6_900, "x" * 16_000, '"' * 13_700):
        await home.ask("POST", path, {"text": text})
    async with client_of(home, key) as client:
        kept = await client.find({"kinds": [1059]})
        assert len(kept) == 3
        assert all(len(json.dumps(["EVENT", one])) < relay_server.MAX_MESSAGE for one in kept)


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


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        ("workflow.asked", {"workflow": "a1", "step": 3, "question": "Shall I sell?"}, {"workflow": "a1", "step": 3}),
        ("backup.failed", {"work": "prune", "code": "backup.full", "message": "/home/me is full"}, {"work": "prune"}),
        ("turn.started", {"session": "a1", "prompt": "my plan", "more": {"session": "x"}}, {"session": "a1"}),
        ("made.up", {"id": "two words", "run": "x" * 65, "entry": True, "turn": ["a"], "reason": 5}, {}),
        ("made.up", {"id": "plans/house.md", "work": "https://example.com", "step": "2.1.3"}, {"step": "2.1.3"}),
        ("orchestrator.spawned", {"id": "a1", "parent": None, "title": "Find a job", "agent": "x"}, {"id": "a1"}),
    ],
)
def test_a_published_event_has_the_kind_the_time_and_ids_only(
    tmp_path: Path, kind: str, data: dict[str, Any], told: dict[str, Any]
) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        event = timeline.append(kind, data)
    assert json.loads(write_published_event(event)) == {"kind": kind, "at": event.at, "data": told}


async def test_a_neighbour_whose_token_was_revoked_is_told_no_event(home: MeshFreehold, tmp_path: Path) -> None:
    """It stays in the list until it is evicted."""
    manifest = with_relays(relay_url(home), more='publish = ["turn.started"]\n')
    async with running_mesh(tmp_path, manifest) as friend:
        await pair(home, friend)
        revoked = make_key()
        friend.mesh.neighbours.add(revoked.public, "was", url=None, did=None, grants=(), given=(), who="test")
        friend.gateway.services.tokens.revoke("neighbour-was")
        friend.gateway.services.timeline.append("turn.started", {"session": "abc"})

        async def is_told() -> bool:
            return bool(await messages_of(home))

        await until(is_told)
        kept = home.mesh.require_relay().store.find([NostrFilter(kinds=frozenset({1059}))])
        assert {one.tag("p") for one in kept} == {home.mesh.key.public}


def test_a_neighbour_that_writes_much_pushes_out_nobody_elses_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "MAX_KEPT", 20)
    monkeypatch.setattr(messages, "BATCH", 5)
    loud, quiet = make_key().public, make_key().public
    with Timeline(tmp_path / "timeline.db") as timeline:
        timeline.ensure_schema(ROOM, *STEPS)
        kept = messages.NeighbourMessages(timeline)
        assert kept.add(write_rumor(quiet, loud, "the first of all"), "message")
        for number in range(200):
            assert kept.add(write_rumor(loud, quiet, str(number)), "message")
        found = [one.content for one in kept.list(500)]
    assert len(found) < 25
    assert {"the first of all", "199"} <= set(found)


async def test_a_message_from_the_far_future_is_of_now_and_hides_none(home: MeshFreehold) -> None:
    key, kept = make_key(), home.mesh.relays.messages
    home.mesh.neighbours.add(key.public, "other", url=None, did=None, grants=(), given=(), who="test")
    late = replace(write_rumor(key.public, home.mesh.key.public, "from far ahead"), created_at=MAX_TIME)
    assert kept.add(late, "message")
    with home.gateway.services.timeline.transaction() as tx:  # as one that a former version has stored
        tx.execute("UPDATE mesh_message SET at = ?, received = received - 10", (MAX_TIME,))
    assert kept.add(write_rumor(key.public, home.mesh.key.public, "of now"), "message")
    found = await home.ask("GET", "/v1/mesh/messages")
    assert [one["content"] for one in found] == ["of now", "from far ahead"]
    assert all(datetime.fromisoformat(one["at"]) <= datetime.now(UTC) for one in found)


def test_messages_of_strangers_hide_none_of_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait until a channel reads them. Short ones need little, and of long ones the longest go first."""
    monkeypatch.setattr(direct_inbox, "MAX_LENGTH", 100_000)
    key, owner = make_key(), make_key().public
    inbox = DirectInbox(SimpleNamespace(key=key))  # type: ignore[arg-type]
    inbox.take(write_rumor(owner, key.public, "of the owner"))
    for number in range(1_000):
        inbox.take(write_rumor(make_key().public, key.public, f"short {number}" if number % 2 else "x" * 15_000))
    texts = [one.text for one in inbox._kept.values() if one is not None]
    assert (texts[0], len([one for one in texts if one.startswith("short")])) == ("of the owner", 500)
    assert sum(map(len, texts)) == inbox._length <= 100_000
    for _ in range(direct_inbox.MAX_KEPT):
        inbox.take(write_rumor(owner, key.public, "more"))
    assert len(inbox._kept) == direct_inbox.MAX_KEPT


async def test_the_mesh_holds_back_readiness_only_when_it_is_required(tmp_path_factory: pytest.TempPathFactory) -> None:
    for is_required in (False, True):
        manifest = with_relays("ws://127.0.0.1:9", more=f"required = {str(is_required).lower()}\n")
        async with running_mesh(tmp_path_factory.mktemp("home"), manifest) as home:
            await until(lambda: any(one.state == "away" for one in home.mesh.relays.states()))
            missing = (await home.gateway.http.get("/ready", headers=home.owner)).json()["missing"]
            assert ("mesh" in [one["name"] for one in missing]) == is_required
