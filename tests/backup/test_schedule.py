"""When which work is due, and the program that does it."""

import asyncio
import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.backup_home import BackupHome, add_events
from tests.support.condition import until

from freehold.backup import __main__ as program_module
from freehold.backup.__main__ import BackupProgram, tell_stale
from freehold.backup.metrics import add_backup_metrics
from freehold.backup.requests import find_running_work, request_work
from freehold.backup.schedule import DAY, MONTH, Attempts, Work, choose_work
from freehold.backup.status import (
    STALE_AFTER,
    BackupFailure,
    BackupStatus,
    LastBackup,
    LastRehearsal,
    LastVerification,
    describe_trouble,
    read_status,
    update_status,
)
from freehold.backup.stores.folder import FolderStore
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.installed_version import trial_journal
from freehold.observe.metrics import MetricsRegistry
from freehold.timeline import Timeline

NOW = 1_800_000_000.0
FULL = BackupFailure(NOW, "backup.full", "It is full", "Prune")
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
        (_with(failures={"now": FULL}), ("It is full. Prune", False)),
        (_with(pending=NOW - STALE_AFTER - 1), ("A change has been waiting", True)),
        (
            _with(pending=NOW - STALE_AFTER - 1, failures={"now": FULL}),
            ("It is full. Prune", True),
        ),
        (_with(failures={"prune": FULL}), ("The last removal of old backups failed: It is full. Prune", False)),
        (_with(failures={"prune": FULL, "now": FULL}), ("It is full. Prune", False)),
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


def test_a_change_that_waits_too_long_is_told_once(small_home: BackupHome) -> None:
    """And again for the next one."""
    home = small_home.home

    def count() -> int:
        with Timeline(home.timeline, readonly=True) as timeline:
            return len(timeline.read(after=0, kinds=["backup.stale"]))

    update_status(home, pending=NOW)
    for now, told in ((NOW + STALE_AFTER, 0), (NOW + STALE_AFTER + 1, 1), (NOW + STALE_AFTER + 9, 1)):
        tell_stale(home, now)
        assert count() == told
    update_status(home, pending=None)
    tell_stale(home, NOW + 10 * STALE_AFTER)
    update_status(home, pending=NOW + 10 * STALE_AFTER)
    tell_stale(home, NOW + 12 * STALE_AFTER)
    assert count() == 2


@pytest.mark.parametrize(
    ("status", "failing"),
    [
        (WELL, 0),
        (_with(failures={"prune": FULL}), 1),
        (_with(verification=LastVerification(NOW, 1, 1, ("pack is missing",))), 1),
        (_with(rehearsal=LastRehearsal(NOW, 1, ("timeline",))), 1),
        (_with(pending=1.0), 1),
    ],
)
async def test_the_metric_tells_of_everything_that_is_wrong(
    small_home: BackupHome, status: BackupStatus, failing: int
) -> None:
    update_status(small_home.home, **vars(status))
    metrics = MetricsRegistry()
    refresh = add_backup_metrics(metrics, SimpleNamespace(home=small_home.home))  # type: ignore[arg-type]
    await refresh()
    assert f"\nfreehold_backup_failing {failing:.1f}\n" in metrics.expose()


async def test_nothing_is_backed_up_while_a_version_is_on_trial(
    small_home: BackupHome, store: FolderStore, tmp_path: Path
) -> None:
    """What it writes may be taken back, and must not be what the next backup compares with."""
    home = small_home.home
    home.manifest.write_text(f'[backup]\nto = "{tmp_path / "store"}"\n')
    home.run.mkdir()
    small_home.set_up(store)
    trial_journal(home).parent.mkdir()
    trial_journal(home).write_text('{"copy": "before-1"}')
    async with asyncio.timeout(60):
        program = asyncio.create_task(BackupProgram(home, after=0.1, tick=0.1).run())
        try:
            await until(lambda: (home.run / "backup.sock").exists())
            with pytest.raises(FreeholdError) as caught:
                await request_work(home, "now")
            assert caught.value.code == "backup.busy"
            assert read_status(home) == BackupStatus()
            trial_journal(home).unlink()
            await until(lambda: read_status(home).last)
        finally:
            program.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await program


async def test_a_change_is_noticed_while_other_work_hangs(
    small_home: BackupHome, store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a prune on a disk of the network that does not answer. Else nobody would be told that backups are late."""
    home, real = small_home.home, program_module.run_job
    home.manifest.write_text(f'[backup]\nto = "{tmp_path / "store"}"\n')
    home.run.mkdir()
    small_home.set_up(store)
    hangs = asyncio.Event()

    async def run_job(home: Home, work: Work) -> bool:
        if work != "now":
            hangs.set()
            await asyncio.Event().wait()
        return await real(home, work)

    monkeypatch.setattr(program_module, "run_job", run_job)
    async with asyncio.timeout(60):
        program = asyncio.create_task(BackupProgram(home, after=0.1, tick=0.1).run())
        try:
            await hangs.wait()
            await until(lambda: read_status(home).pending is None)
            add_events(home, 1)
            await until(lambda: read_status(home).pending)
        finally:
            program.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await program


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
