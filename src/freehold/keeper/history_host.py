"""History inside the keeper: runs in its own threads and answers on the socket and the recovery page."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from freehold.errors import FreeholdError
from freehold.history import calls, copy_calls
from freehold.history.restore_event import RestoreCall, make_restore_event
from freehold.home import ensure_private_folder
from freehold.keeper.methods import RpcMethods
from freehold.strict_json import encode
from freehold.typed_call import TypedCall

if TYPE_CHECKING:
    from freehold.history.history import History
    from freehold.history.model import HistoryNotice
    from freehold.history.service import HistoryService
    from freehold.home import Home
    from freehold.keeper.plan import KeeperPlan
    from freehold.keeper.recorder import RecordEvent

log = logging.getLogger(__name__)
Reply = TypeVar("Reply")

LONG_CALL_SECONDS = 0.5
NAMES_KEPT = {"microvm": 1.2}
"""Seconds in which a program in a computer with a kernel of its own may open the file that had a name before: virtiofsd
lets that kernel keep each name for a second. What it wrote then would be lost, so the caller is answered afterwards."""

# Reads never wait for a snapshot, so they have threads of their own.
READS: frozenset[type[TypedCall[Any]]] = frozenset(
    {
        calls.GetHistoryStatus,
        calls.ListEntries,
        calls.ListEntryChanges,
        calls.DiffEntry,
        calls.CompareEntries,
        calls.ShowFile,
        copy_calls.ReadChangeSet,
    }
)
# They never wait, and are answered in the event loop: a cancellation must not come too late because all threads are busy.
IMMEDIATE: frozenset[type[TypedCall[Any]]] = frozenset({calls.ListRestores, calls.CancelRestore})


class HistoryHost:
    """Open it with `open`, close it with `close`. `after_undo` is called when programs inside see what was restored."""

    def __init__(self, home: Home, plan: KeeperPlan, record: RecordEvent, after_undo: Callable[[], None]) -> None:
        self._home = home
        self._plan = plan
        self._record = record
        self._after_undo = after_undo
        self._reads = ThreadPoolExecutor(4, "history-read")
        self._works = ThreadPoolExecutor(4, "history-work")
        self._opening: asyncio.Future[None] | None = None
        self._history: History | None = None
        self._service: HistoryService | None = None
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        """When this is cancelled, the thread still finishes to open the history; `close` waits for it."""
        self._opening = self._loop.run_in_executor(self._works, self._open)
        await asyncio.shield(self._opening)

    async def record_at_start(self) -> None:
        """Record what was written while no keeper ran. Makes no entry when nothing was."""
        try:
            await self.call(calls.TakeSnapshot(why="found at start"))
        except FreeholdError as error:
            log.warning("the snapshot at start failed: %s", error)
        # What reading the manifest and the first folders needed is not needed again.
        await self._loop.run_in_executor(self._works, self._opened().release_memory)

    async def record_at_stop(self) -> None:
        """Record the state that the keeper leaves behind."""
        if self._service is not None:
            await self.call(calls.TakeSnapshot(why="left at stop"))

    async def call(self, call: TypedCall[Reply]) -> Reply:
        """The reply to one call, worked out in a thread. A call that changed files is recorded in the timeline."""
        service = self._opened()
        if type(call) in IMMEDIATE:
            return service.answer(call)
        pool = self._reads if type(call) in READS else self._works
        reply = await self._loop.run_in_executor(pool, _answer, service, call)
        if isinstance(call, RestoreCall) and isinstance(reply, calls.RestoreReport):
            event = make_restore_event(call, reply)
            self._record(event.kind, event.data, who=event.who)
            try:
                await self._wait_until_seen()
            finally:
                self._after_undo()
        elif isinstance(call, copy_calls.MergeChangeSet):
            await self._wait_until_seen()
        return reply

    async def _wait_until_seen(self) -> None:
        """Returns when no program in the computer sees a file any more that was replaced."""
        await asyncio.sleep(NAMES_KEPT.get(self._plan.backend, 0.0))

    async def call_json(self, method: str, params: dict[str, Any]) -> Any:
        """`call` with a method's name and plain JSON, for the HTTP routes of the recovery page."""
        return encode(await self.call(self._opened().read_call(method, params)))

    def register(self, methods: RpcMethods) -> None:
        for shape in self._opened().call_types:
            methods.add_call(shape, self.call)
        methods.add_stream(calls.FollowFiles, self._follow)

    async def close(self) -> None:
        if self._opening is not None:
            await asyncio.gather(self._opening, return_exceptions=True)  # `open` has raised its error, if any
        if self._history is not None:
            await self._loop.run_in_executor(self._works, self._history.close)
        self._reads.shutdown(wait=False, cancel_futures=True)
        self._works.shutdown(wait=False, cancel_futures=True)

    async def _follow(self, request: calls.FollowFiles) -> AsyncGenerator[calls.ChangedFiles, None]:
        from freehold.history.service import list_changed_files

        if self._history is None:
            raise self._not_open()
        stream = self._history.stream
        # The first item says where the stream begins, so that the reader can list the folders and miss nothing.
        begin = stream.sequence if request.after is None else request.after
        yield calls.ChangedFiles(begin, relist=False, items=())
        async for batch in stream.follow(request.after):
            yield list_changed_files(batch)

    def _open(self) -> None:
        from freehold.history.history import History
        from freehold.history.service import HistoryService
        from freehold.history.settings import HistorySettings

        folders = {"workspace": self._home.workspace, "home": self._home.agent_home, "pods": self._home.pods}
        roots = {name: path for name, path in folders.items() if name in self._plan.history_folders}
        if "pods" in roots:
            ensure_private_folder(self._home.pods)
        settings = HistorySettings(
            quota=self._plan.history_quota,
            rate=self._plan.history_rate,
            quiet=self._plan.history_quiet,
            ignore=self._plan.history_ignore,
        )
        history = History(self._home.history, roots, settings, on_notice=self._record_notice, copies=self._home.copies)
        try:
            history.start()
        except BaseException:
            history.close()
            raise
        self._history, self._service = history, HistoryService(history)

    def _record_notice(self, notice: HistoryNotice) -> None:
        data = {"code": notice.code, "message": notice.message, "hint": notice.hint}
        self._loop.call_soon_threadsafe(self._record, "history.notice_given", data)

    def _opened(self) -> HistoryService:
        if self._service is None:
            raise self._not_open()
        return self._service

    @staticmethod
    def _not_open() -> FreeholdError:
        return FreeholdError("history.not-open", "The history is not open yet", hint="Try again in a moment")


def _answer(service: HistoryService, call: TypedCall[Reply]) -> Reply:
    began = time.monotonic()
    try:
        return service.answer(call)
    finally:
        if time.monotonic() - began > LONG_CALL_SECONDS:
            service.release_memory()
