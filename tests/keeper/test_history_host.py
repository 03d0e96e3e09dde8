"""History in the keeper: asked over the socket, followed as a stream, and told about when files were put back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.keeper.test_parts import PLAN

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.archive import Archive
from freehold.keeper.client import KeeperClient
from freehold.keeper.methods import Methods
from freehold.keeper.rpc import RpcServer
from freehold.timeline import Json


class Room:
    def __init__(self, home: Home) -> None:
        self.home = home
        self.events: list[tuple[str, Mapping[str, Json]]] = []
        self.undone = 0
        plan = replace(PLAN, history_folders=("workspace", "home"), history_quiet=0, history_ignore=("*.iso",))
        self.archive = Archive(home, plan, self._record, self._after_undo)
        self.client = KeeperClient(home)

    def _record(self, kind: str, data: Mapping[str, Json], *, who: str = "keeper") -> None:
        self.events.append((kind, data))

    def _after_undo(self) -> None:
        self.undone += 1


@pytest.fixture
async def room(home: Home) -> AsyncIterator[Room]:
    home.workspace.mkdir()
    home.agent_home.mkdir()
    room = Room(home)
    await room.archive.open()
    methods = Methods()
    room.archive.register(methods)
    async with RpcServer(home.keeper_socket, methods).serve():
        yield room
    await room.archive.close()


async def test_an_undo_over_the_socket_is_recorded_and_those_concerned_are_told(room: Room) -> None:
    file = room.home.workspace / "file"
    file.write_text("one")
    await room.client.call("mark", {"phase": "before"})
    file.write_text("two")
    await room.client.call("history.mark", {"phase": "after", "who": {"by": "agent", "agent": "claude"}})
    plan = await room.client.call("history.undo", {"dry_run": True})
    assert file.read_text() == "two"
    assert [step["path"] for step in plan["steps"] if step["fate"] == "write"] == ["workspace/file"]
    assert (room.undone, room.events) == (0, [])

    outcome = await room.client.call("history.undo", {"who": {"by": "owner"}})
    assert file.read_text() == "one"
    assert room.undone == 1
    assert room.events[-1] == (
        "history.undone",
        {"entry": outcome["entry"]["id"], "paths": outcome["done"], "unsettled": []},
    )


async def test_file_changes_are_followed_from_a_known_number_on(room: Room) -> None:
    async with asyncio.timeout(20), contextlib.aclosing(room.client.stream("files.follow")) as stream:
        first = await anext(stream)
        assert first["items"] == []
        (room.home.workspace / "new").write_text("x")
        seen: list[dict[str, Any]] = []
        async for changes in stream:
            seen += changes["items"]
            if any(item["path"] == "workspace/new" for item in seen):
                break
        assert all(item["sequence"] > first["sequence"] for item in seen)


async def test_a_reader_with_a_number_from_another_life_is_told_to_list_again(room: Room) -> None:
    async with (
        asyncio.timeout(20),
        contextlib.aclosing(room.client.stream("files.follow", {"after": 999_999})) as stream,
    ):
        await anext(stream)
        assert (await anext(stream))["relist"]


async def test_what_the_owner_ignores_is_not_kept(room: Room) -> None:
    (room.home.workspace / "big.iso").write_text("x")
    (room.home.workspace / "small.txt").write_text("x")
    mark = await room.client.call("history.snapshot")
    changes = await room.client.call("history.changes", {"entry": mark["entry"]})
    assert [change["path"] for change in changes["changes"]].count("workspace/small.txt") == 1
    assert all("iso" not in change["path"] for change in changes["changes"])


async def test_a_wrong_question_is_refused_by_name(room: Room) -> None:
    with pytest.raises(FreeholdError) as caught:
        await room.client.call("history.undo", {"entri": 3})
    assert caught.value.code == "history.bad-request"


async def test_questions_before_it_is_open_are_refused_politely(home: Home) -> None:
    room = Room(home)
    with pytest.raises(FreeholdError) as caught:
        await room.archive.call("history.log", {})
    assert caught.value.code == "history.not-open"
    await room.archive.close()
