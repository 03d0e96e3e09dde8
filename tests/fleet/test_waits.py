"""A program whose computers wait for room can read why, and `freehold map` shows it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fleet.fleet_work import SMALL
from tests.fleet.one_node import OneNode, one_node
from tests.support.condition import until

from freehold.cli._batch_view import BatchView
from freehold.computer import Computer

CARD = "?gpus=1"
NO_CARD = "No node has 0.25 processors, 1 GPU and 256 MiB of memory"


@pytest.fixture
async def fleet() -> AsyncIterator[OneNode]:
    """No node of it has a card."""
    async with one_node() as found:
        yield found


@contextlib.asynccontextmanager
async def under_way(work: "asyncio.Future[object]") -> AsyncIterator[None]:
    try:
        yield
    finally:
        work.cancel()
        await asyncio.wait({work})


async def test_a_computer_that_waits_says_why(fleet: OneNode) -> None:
    computer = Computer.start(on=fleet.place + CARD, limits=SMALL)
    assert computer.waits_for == ""
    async with under_way(asyncio.ensure_future(computer.__aenter__())):
        assert await until(lambda: computer.waits_for) == NO_CARD
    assert computer.waits_for == ""


async def test_a_pool_says_why_when_somebody_waits_for_it(fleet: OneNode) -> None:
    async with Computer.pool(2, on=fleet.place + CARD, limits=SMALL) as pool:
        await until(lambda: len(fleet.head.queue) == 2)
        assert pool.waits_for == ""
        async with under_way(asyncio.ensure_future(pool.wait_ready())):
            assert await until(lambda: pool.waits_for) == NO_CARD
        assert pool.waits_for == ""


async def test_a_computer_that_has_room_waits_for_nothing(fleet: OneNode) -> None:
    pending = Computer.start(on=fleet.place, limits=SMALL)
    async with pending as computer:
        assert (pending.waits_for, (await computer.run("echo on")).stdout) == ("", b"on\n")


async def test_a_batch_whose_tasks_wait_says_why_once(
    fleet: OneNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.sh"
    script.write_text("true")
    batch = Computer.map(script, ["a", "b"], into=tmp_path / "out", on=fleet.place + CARD, limits=SMALL, parallel=2)
    errors = ""

    def read_errors() -> str:
        nonlocal errors
        errors += capsys.readouterr().err
        return errors

    async with under_way(asyncio.ensure_future(BatchView(batch).run())):
        await until(lambda: NO_CARD in read_errors())
        assert batch.progress.waits_for == NO_CARD
    assert read_errors().count(NO_CARD) == 1
