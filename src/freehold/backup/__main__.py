"""The program of backups: `python -m freehold.backup --home FOLDER`, started by the keeper.

It watches for changes and starts one job at a time, each a process of its own that gives its memory back.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sqlite3
import sys
import time
from datetime import UTC, datetime

from freehold.backup.home_state import read_home_state
from freehold.backup.job import read_section, record_event
from freehold.backup.recovery_state import is_set_up
from freehold.backup.requests import SOCKET, RequestedWork, serve_requests
from freehold.backup.schedule import Attempts, Work, choose_work
from freehold.backup.status import BackupStatus, is_stale, read_status, update_status
from freehold.errors import FreeholdError
from freehold.home import Home, ensure_private_folder, find_home
from freehold.installed_version import is_on_trial
from freehold.observe.logs import configure_logging

TICK = 15.0
STOP_TIMEOUT = 5.0
_log = logging.getLogger("freehold.backup")


class BackupProgram:
    def __init__(self, home: Home, after: float, *, tick: float = TICK) -> None:
        self._home = home
        self._after = after
        self._tick = tick
        self._attempts: dict[Work, Attempts] = {}
        self._running: Work | None = None
        self._asked: RequestedWork | None = None
        self._wake = asyncio.Event()

    async def run(self) -> None:
        async with serve_requests(self._home, self._ask, lambda: self._running), asyncio.TaskGroup() as group:
            group.create_task(self._watch_age())
            while True:
                await self._do_work()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._tick):
                        await self._wake.wait()
                self._wake.clear()

    async def _watch_age(self) -> None:
        """Beside the work, which may hang: a change is noticed all the same."""
        while True:
            if self._running not in (None, "now"):
                await self._note_changes()
            with contextlib.suppress(OSError):
                await asyncio.to_thread(tell_stale, self._home, time.time())
            await asyncio.sleep(self._tick)

    def _ask(self, work: RequestedWork) -> bool:
        if self._running is not None or self._asked is not None or is_on_trial(self._home):
            return False
        self._asked = work
        self._wake.set()
        return True

    async def _do_work(self) -> None:
        """Everything that is due, one after the other."""
        if not is_set_up(self._home) or is_on_trial(self._home):
            self._asked = None  # what a version on trial writes may be taken back, and would be in a backup
            return
        while (work := self._asked or await self._choose()) is not None:
            self._asked, self._running = None, work
            try:
                failed = not await run_job(self._home, work)
            finally:
                self._running = None
            before = self._attempts.get(work, Attempts())
            self._attempts[work] = Attempts(before.count + 1, time.time()) if failed else Attempts()

    async def _choose(self) -> Work | None:
        status, changed = await self._note_changes()
        return choose_work(status, self._attempts, changed=changed, after=self._after, now=time.time())

    async def _note_changes(self) -> tuple[BackupStatus, bool]:
        """Whether something is in no backup. The status says since when."""
        status = read_status(self._home)
        try:
            changed = await asyncio.to_thread(read_home_state, self._home) != status.state
        except (sqlite3.Error, OSError) as error:
            _log.warning("cannot tell whether something has changed: %s", error)
            changed = True
        if changed and status.pending is None:
            status = update_status(self._home, pending=time.time())
        elif not changed and status.pending is not None:
            status = update_status(self._home, pending=None)
        return status, changed


def tell_stale(home: Home, now: float) -> None:
    """Once for each change that waits too long."""
    status = read_status(home)
    if status.pending is not None and status.told != status.pending and is_stale(status, now):
        update_status(home, told=status.pending)
        since = datetime.fromtimestamp(status.pending, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        record_event(home, "backup.stale", {"since": since})


async def run_job(home: Home, work: Work) -> bool:
    """Whether it succeeded. The job is ended when this is cancelled."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "freehold.backup.job", "--home", str(home.root), work, stdin=asyncio.subprocess.DEVNULL
    )
    try:
        return await process.wait() == 0
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(STOP_TIMEOUT):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


async def _run(home: Home) -> None:
    ensure_private_folder(home.root / "backup")
    me = asyncio.current_task()
    assert me is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await BackupProgram(home, read_section(home).after).run()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m freehold.backup")
    parser.add_argument("--home", required=True)
    home = find_home(parser.parse_args().home)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the keeper handles Ctrl-C
    configure_logging("info", "json", "backup")
    with contextlib.suppress(OSError):
        os.nice(5)
    with contextlib.suppress(FileNotFoundError):
        (home.run / SOCKET).unlink()
    try:
        asyncio.run(_run(home))
    except FreeholdError as error:
        print(error, file=sys.stderr)  # noqa: T201 - captured by the keeper
        sys.exit(1)


if __name__ == "__main__":
    main()
