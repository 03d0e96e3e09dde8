"""What a turn is said to have done to the files, with a real history behind it: its own work and nobody else's."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.agents.stage import Stage
from tests.agents.test_approvals import asked

from freehold.history import History, Settings, Who
from freehold.history.service import HistoryService

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def history(stage: Stage, workspace: Path, tmp_path: Path) -> AsyncIterator[History]:
    with History(tmp_path / "history", {"workspace": workspace}, Settings(quiet=0)) as history:
        service = HistoryService(history)

        async def ask(method: str, params: dict[str, Any]) -> Any:
            return await asyncio.to_thread(service.handle, method, params)

        stage.room.ground.keeper = ask
        await asyncio.to_thread(history.start)
        await asyncio.to_thread(history.snapshot)
        yield history


async def test_a_turn_tells_only_of_its_own_work(stage: Stage, history: History, workspace: Path) -> None:
    """While it waits another session works, and the owner undoes and redoes that."""
    waiting, other = await stage.open(), await stage.open()
    turn = await stage.say(waiting, {"run": "true"})
    approval = await asked(stage, waiting)
    busy = await stage.say(other, {"run": "echo hello > chat.txt"})
    await stage.room.answer((await asked(stage, other)).id, "once", who="owner")
    worked = (await stage.ended(other, busy)).data["changes"]
    assert worked | {"entry": 0, "before": 0} == {
        "added": 1, "changed": 0, "removed": 0, "entry": 0, "before": 0, "shared": True,
    }  # fmt: skip
    await asyncio.to_thread(history.undo, None, Who("owner"))
    await asyncio.to_thread(history.redo, Who("owner"))
    await stage.room.answer(approval.id, "once", who="owner")
    changes = (await stage.ended(waiting, turn)).data["changes"]
    assert (changes["added"], changes["changed"], changes["removed"]) == (0, 0, 0)
    assert changes["entry"] == changes["before"]
    assert (workspace / "chat.txt").exists()


async def test_a_turn_alone_is_told_from_its_first_entry_to_its_last(stage: Stage, history: History) -> None:
    session = await stage.open()
    turn = await stage.say(session, {"run": "touch early"}, {"run": "touch late"})
    await stage.room.answer((await asked(stage, session)).id, "once", who="owner")
    second = await asked(stage, session, 2)
    await asyncio.to_thread(history.quiet_snapshot, "")
    await stage.room.answer(second.id, "once", who="owner")
    changes = (await stage.ended(session, turn)).data["changes"]
    assert changes == {
        "added": 2, "changed": 0, "removed": 0, "entry": history.newest(), "before": history.newest() - 2, "shared": False,
    }  # fmt: skip
