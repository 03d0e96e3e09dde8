"""When which work is due, and the program that does it."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, add_events
from tests.support.condition import until

from freehold.backup.__main__ import BackupProgram
from freehold.backup.requests import find_running_work, request_work
from freehold.backup.schedule import DAY, MONTH, Attempts, choose_work
from freehold.backup.status import (
    STALE_AFTER,
    BackupFailure,
    BackupStatus,
    LastBackup,
    LastRehearsal,
    LastVerification,
    describe_trouble,
    read_status,
)
from freehold.backup.stores.folder import FolderStore
from freehold.errors import FreeholdError

NOW = 1_800_000_000.0
LAST = LastBackup(1, NOW - 100, NOW - 100, 1, 1, 1, 1.0)
WELL = BackupStatus(
    last=LAST,
    verification=LastVerification(NOW - 100, 1, 1, ()),
    rehearsal=LastRehearsal(NOW - 100, 1, ()),
    pruned=NOW - 100,
)


def _choose(status: BackupStatus, *, changed: bool = False, now: float = NOW, **failed: Attempts) -> str | None:
    return choose_work(status, failed, changed=changed, after=300, now=now)  # type: ignore[arg-type]


def _with(**changes: object) -> BackupStatus:
    return BackupStatus(**vars(WELL) | changes)


def test_the_first_backup_is_due_at_once() -> None:
    assert _choose(BackupStatus()) == "now"


def test_a_change_is_backed_up_five_minutes_after_it_was_first_seen() -> None:
    assert _choose(WELL) is None
    assert _choose(_with(pending=NOW - 299), changed=True) is None
    assert _choose(_with(pending=NOW - 300), changed=True) == "now"


def test_a_sample_is_read_every_day_and_a_restore_tried_every_month() -> None:
    assert _choose(_with(verification=LastVerification(NOW - DAY, 1, 1, ()))) == "verify"
    assert _choose(_with(pruned=NOW - DAY)) == "prune"
    assert _choose(_with(rehearsal=LastRehearsal(NOW - MONTH, 1, ()))) == "rehearse"
    assert _choose(_with(rehearsal=LastRehearsal(NOW - DAY, 1, ()))) is None


def test_a_clock_that_was_set_back_holds_nothing_up() -> None:
    assert _choose(_with(pending=NOW + 86_400), changed=True) == "now"
    assert _choose(_with(verification=LastVerification(NOW + 1e9, 1, 1, ()))) == "verify"
    assert Attempts(9, NOW + 86_400).may_try(NOW)


def test_what_failed_is_tried_again_with_growing_pauses() -> None:
    due = _with(verification=None)
    assert _choose(due) == "verify"
    assert _choose(due, verify=Attempts(1, NOW - 59)) is None
    assert not Attempts(1, NOW - 59).may_try(NOW)
    assert Attempts(1, NOW - 60).may_try(NOW)
    assert not Attempts(3, NOW - 239).may_try(NOW)
    assert not Attempts(50, NOW - 1799).may_try(NOW)
    assert Attempts(50, NOW - 1800).may_try(NOW)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (WELL, None),
        (_with(failure=BackupFailure(NOW, "backup.full", "It is full", "Prune")), ("It is full. Prune", False)),
        (_with(pending=NOW - STALE_AFTER - 1), ("A change has been waiting", True)),
        (
            _with(pending=NOW - STALE_AFTER - 1, failure=BackupFailure(NOW, "backup.full", "It is full", "Prune")),
            ("It is full. Prune", True),
        ),
        (_with(verification=LastVerification(NOW, 1, 1, ("pack is missing",))), ("The last verification found", True)),
        (_with(rehearsal=LastRehearsal(NOW, 1, ("timeline",))), ("The last trial of a restore found", True)),
    ],
)
def test_what_the_health_says(status: BackupStatus, expected: tuple[str, bool] | None) -> None:
    found = describe_trouble(status, has_key=True, now=NOW)
    if expected is None or found is None:
        assert found == expected
    else:
        assert found[0].startswith(expected[0])
        assert found[1] == expected[1]


async def test_the_program_backs_up_what_changes(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    """The first backup, its checks, then one after each change, and one that is asked for."""
    home = small_home.home
    home.manifest.write_text(f'[backup]\nto = "{tmp_path / "store"}"\n')
    home.run.mkdir()
    small_home.set_up(store)
    async with asyncio.timeout(120):
        program = asyncio.create_task(BackupProgram(home, after=0.1, tick=0.1).run())
        try:
            await until(lambda: read_status(home).rehearsal)
            status = read_status(home)
            assert status.last is not None
            assert (status.last.number, status.failure) == (1, None)
            assert status.verification is not None
            assert status.verification.problems == ()
            add_events(home, 1)
            await until(lambda: (last := read_status(home).last) and last.number == 2)
            await until(lambda: read_status(home).pending is None)

            async def ask() -> bool:
                with contextlib.suppress(FreeholdError):
                    await request_work(home, "verify")
                    return True
                return False

            checked = status.verification.at
            await until(ask)
            await until(lambda: (done := read_status(home).verification) and done.at > checked)
            await until(lambda: _nothing_runs(small_home))
        finally:
            program.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await program
    assert not (home.run / "backup.sock").exists()


async def _nothing_runs(small_home: BackupHome) -> bool:
    return await find_running_work(small_home.home) is None
