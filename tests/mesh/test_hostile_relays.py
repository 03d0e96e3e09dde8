"""Relays that lie, repeat, flood or are full of what strangers left there."""

import asyncio
import itertools
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.mesh.freeholds import PEER, pair, running_mesh
from tests.mesh.relays import (
    RELAY,
    KeepingRelay,
    junk_for,
    relay_url,
    wait_for,
    with_relays,
)
from tests.support.condition import DEADLINE, until
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from freehold.mesh import relay_client, relays, stored_pages
from freehold.mesh.nostr.direct_message import WRAP, wrap_message
from freehold.mesh.nostr.event import NostrEvent, read_event, sign_event
from freehold.mesh.nostr.filter import MAX_LIMIT
from freehold.mesh.nostr.keys import make_key
from freehold.mesh.stored_pages import StoredPages


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
                    '["EVENT", "freehold-1", {"id": 1}]',
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


async def test_a_forged_copy_of_a_message_does_not_hide_the_true_one(tmp_path: Path) -> None:
    """The id of an event does not cover its signature. One relay spends the id, the other has the message."""
    friend, hostile, honest = make_key(), KeepingRelay(), KeepingRelay()
    async with (
        hostile.serving() as first,
        honest.serving() as second,
        running_mesh(tmp_path, with_relays(first, second)) as home,
    ):
        home.mesh.neighbours.add(friend.public, "friend", url=None, did=None, grants=(), given=(), who="test")
        true = wrap_message(friend, home.mesh.key.public, "the true one").as_json()
        hostile.kept.append({**true, "sig": "0" * 128})
        await until(lambda: hostile.answers > 0)
        before = hostile.answers
        home.mesh.relays.refresh()
        await until(lambda: hostile.answers > before)
        honest.kept.append(true)
        home.mesh.relays.refresh()
        await wait_for(home, "the true one")


async def test_an_older_list_of_relays_does_not_replace_the_newer_one(tmp_path: Path) -> None:
    """A relay that shows what a neighbour said long ago would lead all messages to itself."""
    friend = make_key()
    async with running_mesh(tmp_path, PEER) as home:
        home.mesh.neighbours.add(friend.public, "friend", url=None, did=None, grants=(), given=(), who="test")
        for at, url in ((2_000, "wss://new.example"), (1_000, "wss://old.example")):
            await home.mesh.relays.receive("", sign_event(friend, 10_002, "", [["r", url]], created_at=at))
        assert home.mesh.relays._lists[friend.public].urls == {"wss://new.example"}


async def test_strangers_cannot_fill_a_relay_so_that_it_is_never_read_again(tmp_path: Path) -> None:
    """What waits at a relay is asked for in a bounded number: more than may come at once would end each connection."""
    friend, full, long_ago = make_key(), KeepingRelay(), int(time.time()) - 5 * 86_400
    async with full.serving() as url, running_mesh(tmp_path, with_relays(url)) as home:
        home.mesh.neighbours.add(friend.public, "friend", url=None, did=None, grants=(), given=(), who="test")
        me = home.mesh.key.public
        full.kept += junk_for(me, *range(long_ago, long_ago + 10)) * 250
        full.kept.append(wrap_message(friend, me, "not spam").as_json())
        home.mesh.relays.refresh()
        await wait_for(home, "not spam")
        assert [one.error for one in home.mesh.relays.states()] == [None]


@pytest.mark.parametrize("place", ["in the middle", "last"])
@pytest.mark.parametrize("is_at_once", [False, True])
async def test_wraps_of_strangers_hide_no_message_that_waits_at_a_relay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, is_at_once: bool
) -> None:
    """A message in a gift wrap is dated back, so what a stranger dates now comes before it, page after page."""
    monkeypatch.setattr(relays, "PAGE", 20)
    friend, full, now = make_key(), KeepingRelay(), int(time.time())
    async with full.serving() as url, running_mesh(tmp_path, with_relays(url)) as home:
        home.mesh.neighbours.add(friend.public, "friend", url=None, did=None, grants=(), given=(), who="test")
        me = home.mesh.key.public
        true = wrap_message(friend, me, "true").as_json()
        newer = [now - (0 if is_at_once else number) for number in range(50)]
        older = [true["created_at"] - 1 - number for number in range(50)] if place == "in the middle" else []
        full.kept += [*junk_for(me, *newer), true, *junk_for(me, *older)]
        home.mesh.relays.refresh()
        await wait_for(home, "true")
        await until(lambda: [one.error for one in home.mesh.relays.states()] == [None])


async def test_what_strangers_left_at_the_own_relay_hides_no_message_at_the_next_start(tmp_path: Path) -> None:
    friend, now = make_key(), int(time.time())
    async with running_mesh(tmp_path, RELAY) as home:
        home.mesh.neighbours.add(friend.public, "friend", url=None, did=None, grants=(), given=(), who="test")
        store, me = home.mesh.require_relay().store, home.mesh.key.public
        # As if it had been killed before it read them.
        for one in junk_for(me, *(now - number // 2 for number in range(MAX_LIMIT + 10))):
            store.add(read_event(one), friend.public)
        store.add(wrap_message(friend, me, "still found"), friend.public)
    async with running_mesh(tmp_path, RELAY) as home:
        await wait_for(home, "still found")


def test_pages_of_a_relay_end_whatever_it_answers() -> None:
    """One that answers every request with the same events, or never with none, is not asked forever."""
    key = make_key()
    same = [sign_event(key, 1, "x", created_at=at) for at in (100, 200, 200)]
    pages, turns = StoredPages(), 0
    while True:
        for one in same:
            pages.note(one)
        if not pages.turn("ws://same.example"):
            break
        turns += 1
    assert turns == 2  # the second has only the oldest, and the third nothing that was asked for
    pages, turns = StoredPages(), 0
    pages.note(sign_event(key, 1, "x", created_at=1_000_000))
    while pages.turn("ws://endless.example"):
        turns += 1
        assert pages.until is not None
        pages.note(sign_event(key, 1, "x", created_at=pages.until))
    assert turns == stored_pages.MAX_PAGES - 1


async def test_an_oversized_event_of_a_foreign_relay_ends_that_connection_and_nothing_else(tmp_path: Path) -> None:
    friend, honest = make_key(), KeepingRelay()
    large = sign_event(make_key(), 1, "x" * relay_client.MAX_MESSAGE).as_json()

    async def send_large(socket: ServerConnection) -> None:
        await socket.send(json.dumps(["EVENT", "freehold-1", large]))
        await socket.wait_closed()

    async with serve(send_large, "127.0.0.1", 0) as server, honest.serving() as good:
        bad = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        async with running_mesh(tmp_path, with_relays(bad, good)) as home:
            home.mesh.neighbours.add(friend.public, "friend", url=None, did=None, grants=(), given=(), who="test")
            await until(lambda: {one.url: one.state for one in home.mesh.relays.states()}.get(bad) == "away")
            error = next(one.error for one in home.mesh.relays.states() if one.url == bad)
            assert "message too big" in str(error)
            honest.kept.append(wrap_message(friend, home.mesh.key.public, "goes on").as_json())
            home.mesh.relays.refresh()
            await wait_for(home, "goes on")


async def test_of_ten_thousand_events_at_once_a_relay_gets_few_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow this machine is, the relay does not gain more messages meanwhile.
    monkeypatch.setattr(relay_client, "MESSAGES_PER_SECOND", 0.001)
    monkeypatch.setattr(relay_client, "MESSAGE_BURST", 100)
    event = json.dumps(["EVENT", "freehold-1", sign_event(make_key(), 1, "x").as_json()])
    connections: list[ServerConnection] = []
    read: list[NostrEvent] = []

    async def flood(socket: ServerConnection) -> None:
        connections.append(socket)
        if len(connections) == 1:
            with suppress(ConnectionClosed):
                for _ in range(10_000):
                    await socket.send(event)
        await socket.wait_closed()

    async def receive(_self: relays.Relays, _relay: str, event: NostrEvent) -> None:
        read.append(event)

    monkeypatch.setattr(relays.Relays, "receive", receive)
    async with serve(flood, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with running_mesh(tmp_path, with_relays(f"ws://127.0.0.1:{port}")) as home:
            await until(lambda: any(one.error == "it sends too much" for one in home.mesh.relays.states()))
            await until(lambda: len(connections) > 1)
            assert len(read) == 100


async def test_a_relay_that_asks_for_the_key_again_and_again_fills_no_memory(tmp_path: Path) -> None:
    asked, over = 300, asyncio.Event()

    async def ask(socket: ServerConnection) -> None:
        for number in range(asked):
            await socket.send(json.dumps(["AUTH", f"challenge {number}"]))
        answers = 0
        async for text in socket:
            answers += json.loads(text)[0] == "AUTH"
            if answers == asked:
                over.set()

    async with serve(ask, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with running_mesh(tmp_path, with_relays(f"ws://127.0.0.1:{port}")) as home:
            await asyncio.wait_for(over.wait(), DEADLINE)
            (client,) = home.mesh.relays._clients
            # That to the last challenge, and to the list of relays that it publishes.
            assert len(client._answers) <= 2


async def test_a_clock_that_was_ahead_hides_no_message(tmp_path: Path) -> None:
    """What was read until a moment that has not come yet must not be the reason to ask for later ones only."""
    friend, full = make_key(), KeepingRelay()
    async with full.serving() as url, running_mesh(tmp_path, with_relays(url)) as home:
        home.mesh.neighbours.add(friend.public, "friend", url=None, did=None, grants=(), given=(), who="test")
        home.mesh.relays._last[url] = int(time.time()) + 30 * 86_400
        wanted = home.mesh.relays._filters(url)[0]
        assert wanted["since"] <= wrap_message(friend, home.mesh.key.public, "x").created_at


async def test_a_relay_that_floods_is_left_and_the_rest_goes_on(tmp_path: Path) -> None:
    async def flood(socket: ServerConnection) -> None:
        event = json.dumps(["EVENT", "freehold-1", sign_event(make_key(), 1, "x").as_json()])
        while True:
            await socket.send(event)
            await asyncio.sleep(0)

    async with serve(flood, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with running_mesh(tmp_path, with_relays(f"ws://127.0.0.1:{port}")) as home:
            await until(lambda: any(one.error == "it sends too much" for one in home.mesh.relays.states()))
            assert (await home.gateway.http.get("/livez")).status_code == 200


async def test_ten_thousand_events_a_second_of_one_relay_stop_no_message_of_another(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real limits: of each connection so many are read at once and so many a second, and the rest waits there."""
    texts: list[str] = []
    ready, connections, read = asyncio.Event(), list[float](), 0

    async def flood(socket: ServerConnection) -> None:
        await ready.wait()
        connections.append(time.monotonic())
        with suppress(ConnectionClosed):
            for number, text in enumerate(texts):
                await socket.send(text)
                if number % 100 == 99:
                    await asyncio.sleep(0.01)
        await socket.wait_closed()

    receive = relays.Relays.receive

    async def count(self: relays.Relays, relay: str, event: NostrEvent) -> None:
        nonlocal read
        read += "127.0.0.1" in relay
        await receive(self, relay, event)

    monkeypatch.setattr(relays.Relays, "receive", count)
    async with (
        serve(flood, "127.0.0.1", 0) as server,
        running_mesh(tmp_path_factory.mktemp("home"), RELAY) as home,
    ):
        flooding = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        manifest = with_relays(flooding, relay_url(home))
        async with running_mesh(tmp_path_factory.mktemp("home"), manifest) as friend:
            await pair(home, friend)
            junk = junk_for(friend.mesh.key.public, *[int(time.time())] * 10_000)
            texts += [json.dumps(["EVENT", "freehold-1", one]) for one in junk]
            ready.set()
            for number in range(5):
                await home.ask("POST", "/v1/mesh/neighbours/other/messages", {"text": f"message {number}"})
            await wait_for(friend, *(f"message {number}" for number in range(5)))
            await until(lambda: "it sends too much" in [one.error for one in friend.mesh.relays.states()])
            most = sum(
                relay_client.MESSAGE_BURST + relay_client.MESSAGES_PER_SECOND * (time.monotonic() - began)
                for began in connections
            )
            assert 0 < read <= most


async def test_a_filter_that_a_relay_does_not_answer_keeps_back_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one neighbour in each filter. A name that was closed or answered before asks for nothing more."""
    monkeypatch.setattr(relays, "MAX_VALUES", 1)
    monkeypatch.setattr(relay_client, "LATER_PAUSE", 0.01)
    keys = [make_key().public for _ in range(5)]
    asked: list[str] = []

    async def close_others(socket: ServerConnection) -> None:
        async for text in socket:
            match json.loads(text):
                case ["REQ", str(name), *filters]:
                    asked.extend(author for one in filters for author in one.get("authors", []))
                    kind = "EOSE" if filters[0]["kinds"] == [WRAP] or len(asked) % 2 else "CLOSED"
                    for _ in range(3):
                        await socket.send(json.dumps([kind, name, *(["error: no"] if kind == "CLOSED" else [])]))

    async with serve(close_others, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with running_mesh(tmp_path, with_relays(f"ws://127.0.0.1:{port}")) as home:
            await until(lambda: [one.state for one in home.mesh.relays.states()] == ["ok"])
            for number, key in enumerate(keys):
                home.mesh.neighbours.add(key, f"n{number}", url=None, did=None, grants=(), given=(), who="test")
            home.mesh.relays.refresh()
            await until(lambda: len(asked) >= len(keys))
            assert sorted(asked) == sorted(keys)


async def test_what_is_dated_ahead_is_tried_again_in_time_and_not_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newer events that are refused too do not put it off, and a relay that then asks for our key is not flooded."""
    monkeypatch.setattr(relay_client, "HELD_PAUSE", 0.5)
    reason = "invalid: created_at too late"
    offered: list[tuple[str, float]] = []

    async def refuse(socket: ServerConnection) -> None:
        async for text in socket:
            match json.loads(text):
                case ["EVENT", {"id": id, "content": content}]:
                    offered.append((content, time.monotonic()))
                    await socket.send(json.dumps(["OK", id, False, reason]))

    async with serve(refuse, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with running_mesh(tmp_path, with_relays(f"ws://127.0.0.1:{port}")) as home:
            numbers = itertools.count()

            async def is_first_offered_again() -> bool:
                number = next(numbers)
                await home.mesh.relays.publish(sign_event(home.mesh.key, 1, str(number), created_at=1_000 + number))
                return [content for content, _ in offered].count("0") > 1

            await until(is_first_offered_again)
            reason = "auth-required: say who you are"
            offered.clear()
            await until(lambda: len(offered) >= 4)
            assert offered[3][1] - offered[0][1] >= 0.4
