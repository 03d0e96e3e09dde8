"""History in the keeper: answers on the socket, streams file changes, and records restores in the timeline."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import pytest
from tests.keeper.test_parts import PLAN
from tests.keeper.test_rpc import send
from tests.support.condition import DEADLINE

from freehold.errors import FreeholdError
from freehold.history import calls
from freehold.home import Home
from freehold.keeper.client import KeeperClient
from freehold.keeper.history_host import HistoryHost
from freehold.keeper.methods import RpcMethods
from freehold.keeper.rpc import RpcServer
from freehold.timeline import Json

OWNER = calls.RequestAuthor(by="owner", via="command_line")


class HistoryHarness:
    def __init__(self, home: Home) -> None:
        self.home = home
        self.events: list[tuple[str, Mapping[str, Json]]] = []
        self.undone = 0
        plan = replace(PLAN, history_folders=("workspace", "home", "pods"), history_quiet=0, history_ignore=("*.iso",))
        self.host = HistoryHost(home, plan, self._record, self._after_undo)
        self.client = KeeperClient(home)

    def _record(self, kind: str, data: Mapping[str, Json], *, who: str = "keeper") -> None:
        self.events.append((kind, data))

    def _after_undo(self) -> None:
        self.undone += 1


@pytest.fixture
async def harness(home: Home) -> AsyncIterator[HistoryHarness]:
    home.workspace.mkdir()
    home.agent_home.mkdir()
    harness = HistoryHarness(home)
    await harness.host.open()
    methods = RpcMethods()
    harness.host.register(methods)
    async with RpcServer(home.keeper_socket, methods).serve():
        yield harness
    await harness.host.close()


async def test_an_undo_over_the_socket_is_recorded_and_reported_to_the_keeper(harness: HistoryHarness) -> None:
    file = harness.home.workspace / "file"
    file.write_text("one")
    await harness.client.call(calls.MarkFiles("before"))
    file.write_text("two")
    await harness.client.call(calls.MarkFiles("after", who=calls.RequestAuthor(by="agent", agent="claude")))
    plan = await harness.client.call(calls.PlanUndo())
    assert file.read_text() == "two"
    assert [step.path for step in plan.steps if step.fate == "write"] == ["workspace/file"]
    assert (harness.undone, harness.events) == (0, [])

    report = await harness.client.call(calls.UndoChanges(who=OWNER))
    assert file.read_text() == "one"
    assert harness.undone == 1
    kind, data = harness.events[-1]
    assert kind == "history.undone"
    assert (data["entry"], data["paths"], data["unsettled"]) == (report.entry.id, report.done, [])


async def test_file_changes_are_streamed_from_a_known_number_on(harness: HistoryHarness) -> None:
    async with asyncio.timeout(DEADLINE), contextlib.aclosing(harness.client.stream(calls.FollowFiles())) as stream:
        first = await anext(stream)
        assert first.items == ()
        (harness.home.workspace / "new").write_text("x")
        seen: list[calls.ChangedFile] = []
        async for batch in stream:
            seen += batch.items
            if any(item.path == "workspace/new" for item in seen):
                break
        assert all(item.sequence > first.sequence for item in seen)


async def test_a_reader_with_a_number_of_another_keeper_must_list_again(harness: HistoryHarness) -> None:
    async with (
        asyncio.timeout(DEADLINE),
        contextlib.aclosing(harness.client.stream(calls.FollowFiles(after=999_999))) as stream,
    ):
        await anext(stream)
        assert (await anext(stream)).relist


async def test_files_that_the_owner_ignores_are_not_recorded(harness: HistoryHarness) -> None:
    (harness.home.workspace / "big.iso").write_text("x")
    (harness.home.workspace / "small.txt").write_text("x")
    mark = await harness.client.call(calls.TakeSnapshot())
    changes = (await harness.client.call(calls.ListEntryChanges(mark.entry))).changes
    assert [change.path for change in changes].count("workspace/small.txt") == 1
    assert all("iso" not in change.path for change in changes)


async def test_a_wrong_request_is_refused_by_the_name_of_the_field(harness: HistoryHarness) -> None:
    error = (await send(harness.home, "history.undo", {"entri": 3}))["error"]
    assert error["code"] == "keeper.bad-params"
    assert "entri is not a known field" in error["message"]


async def test_calls_before_history_is_open_are_refused(home: Home) -> None:
    harness = HistoryHarness(home)
    with pytest.raises(FreeholdError) as caught:
        await harness.host.call(calls.ListEntries())
    assert caught.value.code == "history.not-open"
    await harness.host.close()


async def test_undo_brings_back_personal_documents(harness: HistoryHarness) -> None:
    """They are beside the folders of the computer, which does not see them."""
    note = harness.home.pods / "notes" / "today.md"
    note.parent.mkdir()
    note.write_text("one")
    await harness.client.call(calls.MarkFiles("before"))
    note.unlink()
    await harness.client.call(calls.MarkFiles("after", who=OWNER))
    await harness.client.call(calls.UndoChanges(who=OWNER))
    assert note.read_text() == "one"
