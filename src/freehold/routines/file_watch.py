"""Routines that begin when a file has changed.

History's watcher says that something changed; the entry that history records after it was quiet says what. Entries are
numbered and stored, so a change is neither lost nor seen twice, also when everything was off.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.history.calls import EntryChanges, FollowFiles, ListEntries, ListEntryChanges
from freehold.history.model import Author, EntryRecord
from freehold.keeper.client import KeeperClient
from freehold.routines.pattern import matches
from freehold.routines.records import Routine
from freehold.routines.run_store import RunStore
from freehold.routines.shell_command import tell_reason
from freehold.routines.workflow_work import run_of
from freehold.routines.workflows.records import workflow_of

POSITION = "files"
WORKSPACE = "workspace/"
PAGE = 200
MAX_PAGES = 25
"""Pages of entries that are read for what happened while nothing was watched."""
MAX_CHANGES = 5000
"""Changes of one entry: as many as history tells."""
MAX_TOLD = 100
LOOK_AGAIN = 1.0
LOOK_FOR = 120.0
"""Seconds after a change in which its entry is looked for often: history waits until the files are quiet."""
LOOK_SLOWLY = 30.0
"""Seconds between two looks after that: the owner may have set `history.quiet` to hours."""
RETRY_DELAY = 2.0
TAKEN_BACK = ("undo", "redo", "restore", "revert")
"""Kinds of entries that begin nothing: the owner has brought an earlier state back."""

WaitRoutinesChanged = Callable[[float | None], Awaitable[None]]
FindKey = Callable[[str, int], str]


class FileWatch:
    """Does nothing until there is a routine with such a trigger."""

    def __init__(
        self, runs: RunStore, keeper: KeeperClient, wait_routines_changed: WaitRoutinesChanged, find_key: FindKey
    ) -> None:
        """`find_key` tells the key of the prompt that began a turn of a session. It raises for one that is not known."""
        self._runs = runs
        self._keeper = keeper
        self._wait_routines_changed = wait_routines_changed
        self._find_key = find_key
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
            while not self._changed.is_set() and not await self._read_entries():
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_AGAIN if loop.time() < end else LOOK_SLOWLY):
                        await self._changed.wait()
            await asyncio.sleep(LOOK_AGAIN)

    async def _read_entries(self) -> bool:
        """Begins the runs of the entries that are new. Returns whether there were any."""
        stored = await run_blocking(self._runs.routines.read_position, POSITION)
        try:
            if not stored:
                page = await self._keeper.call(ListEntries(limit=1))
                newest = page.entries[0].id if page.entries else 0
                await run_blocking(self._runs.routines.save_position, POSITION, str(newest))
                return False
            new = await self._list_new(int(stored))
        except FreeholdError:
            return False
        for entry in reversed(new):
            changes = await self._keeper.call(ListEntryChanges(entry.id, MAX_CHANGES))
            await run_blocking(self._begin, changes)
        return bool(new)

    async def _list_new(self, seen: int) -> list[EntryRecord]:
        """The entries after one, the newest first. What is further back than the bound is recorded as not read."""
        new, before = list[EntryRecord](), None
        for _ in range(MAX_PAGES):
            page = await self._keeper.call(ListEntries(limit=PAGE, before=before))
            new += [entry for entry in page.entries if entry.id > seen]
            if len(page.entries) < PAGE or page.entries[-1].id <= seen + 1:
                return new
            before = page.entries[-1].id
        told = {"after": seen, "before": new[-1].id}
        await run_blocking(self._runs.routines.timeline.append, "routine.changes_unread", told)
        return new

    def _begin(self, found: EntryChanges) -> None:
        entry, routines = found.entry, self._runs.routines
        paths = [one.path.removeprefix(WORKSPACE) for one in found.changes if one.path.startswith(WORKSPACE)]
        if entry.kind not in TAKEN_BACK:
            if found.total > len(found.changes):
                told_of = {"entry": entry.id, "read": len(found.changes), "changes": found.total}
                routines.timeline.append("routine.changes_unread", told_of)
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
        who, why = found.entry.who, found.entry.why
        if who.session is not None:
            return self._runs.is_of_routine(who.session, routine.name) or self._is_of_workflow(routine, who)
        # History may record it in the middle of the run as well, as an entry of another kind.
        own = tell_reason(routine.name)
        return who.by == "owner" and (why == own or why.startswith(f"{own}: "))

    def _is_of_workflow(self, routine: Routine, who: Author) -> bool:
        """Whether an agent of its workflow made the change."""
        try:
            workflow = workflow_of(self._find_key(str(who.session), int(who.turn or "")))
            return workflow is not None and self._runs.get(run_of(workflow)).routine == routine.name
        except (FreeholdError, ValueError):
            return False  # its session, or its run, was removed meanwhile
