"""Routines that begin when a file has changed.

History's watcher says that something changed; the entry that history records after it was quiet says what. Entries are
numbered and stored, so a change is neither lost nor seen twice, also when everything was off.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.history.calls import EntryChanges, FollowFiles, ListEntries, ListEntryChanges
from freehold.keeper.client import KeeperClient
from freehold.routines.command_work import tell_reason
from freehold.routines.pattern import matches
from freehold.routines.records import Routine
from freehold.routines.run_store import RunStore

POSITION = "files"
WORKSPACE = "workspace/"
MAX_ENTRIES = 200
MAX_CHANGES = 1000
MAX_TOLD = 100
LOOK_AGAIN = 1.0
LOOK_FOR = 120.0
"""Seconds after a change in which its entry is looked for: history waits until the files are quiet."""
RETRY_DELAY = 2.0
TAKEN_BACK = ("undo", "redo", "restore", "revert")
"""Kinds of entries that begin nothing: the owner has brought an earlier state back."""

WaitRoutinesChanged = Callable[[float | None], Awaitable[None]]


class FileWatch:
    """Does nothing until there is a routine with such a trigger."""

    def __init__(self, runs: RunStore, keeper: KeeperClient, wait_routines_changed: WaitRoutinesChanged) -> None:
        self._runs = runs
        self._keeper = keeper
        self._wait_routines_changed = wait_routines_changed
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        while not await run_blocking(self._runs.routines.list_triggered, "files"):
            await run_blocking(self._runs.routines.save_position, POSITION, "")
            await self._wait_routines_changed(None)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._look())

    async def _follow(self) -> None:
        while True:
            try:
                async with aclosing(self._keeper.stream(FollowFiles())) as batches:
                    async for _ in batches:  # the first one comes at once: what happened before is looked for
                        self._changed.set()
            except FreeholdError:
                await asyncio.sleep(RETRY_DELAY)  # the keeper starts

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._changed.wait()
            self._changed.clear()
            end = loop.time() + LOOK_FOR
            while loop.time() < end and not self._changed.is_set():
                if await self._read_entries():
                    break
                await asyncio.sleep(LOOK_AGAIN)
            await asyncio.sleep(LOOK_AGAIN)

    async def _read_entries(self) -> bool:
        """Begins the runs of the entries that are new. Returns whether there were any."""
        stored = await run_blocking(self._runs.routines.read_position, POSITION)
        try:
            page = await self._keeper.call(ListEntries(limit=MAX_ENTRIES))
        except FreeholdError:
            return False
        if not stored:
            newest = page.entries[0].id if page.entries else 0
            await run_blocking(self._runs.routines.save_position, POSITION, str(newest))
            return False
        new = [entry for entry in reversed(page.entries) if entry.id > int(stored)]
        for entry in new:
            changes = await self._keeper.call(ListEntryChanges(entry.id, MAX_CHANGES))
            await run_blocking(self._begin, changes)
        return bool(new)

    def _begin(self, found: EntryChanges) -> None:
        entry, routines = found.entry, self._runs.routines
        paths = [one.path.removeprefix(WORKSPACE) for one in found.changes if one.path.startswith(WORKSPACE)]
        if entry.kind not in TAKEN_BACK:
            for routine in routines.list_triggered("files"):
                matched = [path for path in paths if any(matches(one, path) for one in routine.spec.files)]
                if matched and not self._is_own(routine, found):
                    told = {"paths": matched[:MAX_TOLD], "count": len(matched), "entry": entry.id}
                    try:
                        self._runs.trigger(routine.name, f"entry:{entry.id}", told)
                    except FreeholdError as error:
                        self._runs.note_refusal(routine.name, error)
        # After the runs: when a crash comes in between, their causes are known.
        routines.save_position(POSITION, str(entry.id))

    def _is_own(self, routine: Routine, found: EntryChanges) -> bool:
        """Whether a run of the same routine has made the change: it would begin itself again and again."""
        who = found.entry.who
        if who.session is not None:
            return self._runs.is_of_routine(who.session, routine.name)
        return found.entry.kind == "command" and found.entry.why == tell_reason(routine.name)
