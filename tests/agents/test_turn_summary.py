"""The changes that a turn reports, with a real history: its own and not those of others."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.agents.session_harness import SessionHarness
from tests.agents.test_approvals import wait_asked

from freehold.history import Author, History, HistorySettings
from freehold.history.service import HistoryService

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def history(harness: SessionHarness, workspace: Path, tmp_path: Path) -> AsyncIterator[History]:
    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as history:
        harness.keeper.service = HistoryService(history).answer
        await asyncio.to_thread(history.start)
        await asyncio.to_thread(history.snapshot)
        yield history


async def test_a_turn_counts_only_its_own_changes(harness: SessionHarness, history: History, workspace: Path) -> None:
    """While it waits, another session changes a file, and the owner undoes and redoes that."""
    waiting, other = await harness.open(), await harness.open()
    turn = await harness.prompt(waiting, {"run": "true"})
    approval = await wait_asked(harness, waiting)
    busy = await harness.prompt(other, {"run": "echo hello > chat.txt"})
    await harness.sessions.answer((await wait_asked(harness, other)).id, "once", who="owner")
    worked = (await harness.wait_ended(other, busy)).data["changes"]
    assert worked | {"entry": 0, "before": 0} == {
        "added": 1, "changed": 0, "removed": 0, "entry": 0, "before": 0, "shared": True,
    }  # fmt: skip
    await asyncio.to_thread(history.undo, None, Author("owner"))
    await asyncio.to_thread(history.redo, Author("owner"))
    await harness.sessions.answer(approval.id, "once", who="owner")
    changes = (await harness.wait_ended(waiting, turn)).data["changes"]
    assert (changes["added"], changes["changed"], changes["removed"]) == (0, 0, 0)
    assert changes["entry"] == changes["before"]
    assert (workspace / "chat.txt").exists()


async def test_a_turn_counts_all_of_its_entries(harness: SessionHarness, history: History) -> None:
    session = await harness.open()
    turn = await harness.prompt(session, {"run": "touch early"}, {"run": "touch late"})
    await harness.sessions.answer((await wait_asked(harness, session)).id, "once", who="owner")
    second = await wait_asked(harness, session, 2)
    await asyncio.to_thread(history.take_quiet_snapshot, "")
    await harness.sessions.answer(second.id, "once", who="owner")
    changes = (await harness.wait_ended(session, turn)).data["changes"]
    assert changes == {
        "added": 2, "changed": 0, "removed": 0, "entry": history.newest(), "before": history.newest() - 2, "shared": False,
    }  # fmt: skip
