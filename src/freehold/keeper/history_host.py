"""History inside the keeper: its work in threads of its own, its questions on the socket and the page."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from freehold.errors import FreeholdError
from freehold.keeper.methods import Methods

if TYPE_CHECKING:
    from freehold.history.history import History
    from freehold.history.model import Notice
    from freehold.history.service import HistoryService
    from freehold.home import Home
    from freehold.keeper.plan import Plan
    from freehold.keeper.recorder import Record

log = logging.getLogger(__name__)

LONG = 0.5

# These never wait for a snapshot, and must not wait behind something that does.
READS = frozenset(
    {
        "history.status",
        "history.log",
        "history.changes",
        "history.diff",
        "history.compare",
        "history.show",
        "history.files",
    }
)
WRITES = {
    "history.undo": "history.undone",
    "history.redo": "history.redone",
    "history.restore": "history.restored",
    "history.revert": "history.reverted",
    "history.recover": "history.recovered",
}


@dataclass(frozen=True)
class FollowParams:
    after: int | None = None


class Archive:
    """Open it with `open`, close it with `close`; `after_undo` is called when files were put back."""

    def __init__(self, home: Home, plan: Plan, record: Record, after_undo: Callable[[], None]) -> None:
        self._home = home
        self._plan = plan
        self._record = record
        self._after_undo = after_undo
        self._reads = ThreadPoolExecutor(4, "history-read")
        self._works = ThreadPoolExecutor(4, "history-work")
        self._history: History | None = None
        self._service: HistoryService | None = None
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        await self._loop.run_in_executor(self._works, self._open)

    async def take_first(self) -> None:
        """What was written while nobody watched; makes no entry when nothing was."""
        try:
            await self.call("history.snapshot", {"why": "found at start"})
        except FreeholdError as error:
            log.warning("the state found at start could not be taken: %s", error)

    async def take_last(self) -> None:
        """The state that is left behind."""
        if self._service is not None:
            await self.call("history.snapshot", {"why": "left at stop"})

    async def call(self, method: str, params: dict[str, Any], *, who: str = "owner") -> Any:
        """The answer to one question, asked in a thread. An undo is noted and told to those it concerns."""
        service = self._opened()
        pool = self._reads if method in READS else self._works
        answer = await self._loop.run_in_executor(pool, _handle, service, method, params)
        if method in WRITES and not params.get("dry_run"):
            entry = answer["entry"]
            self._record(
                WRITES[method],
                {
                    "entry": entry["id"],
                    "paths": answer["done"],
                    "unsettled": [one["path"] for one in answer["unsettled"][:100]],
                },
                who=who,
            )
            self._after_undo()
        return answer

    def register(self, methods: Methods) -> None:
        for name in self._opened().methods:
            methods.calls[name] = self._answer(name)
        methods.calls["mark"] = self._answer("history.mark")
        methods.add_stream("files.follow", FollowParams, self._follow)

    async def close(self) -> None:
        if self._history is not None:
            await self._loop.run_in_executor(self._works, self._history.close)
        self._reads.shutdown(wait=False, cancel_futures=True)
        self._works.shutdown(wait=False, cancel_futures=True)

    def _answer(self, name: str) -> Callable[[object], Any]:
        async def answer(params: object) -> Any:
            if not isinstance(params, dict):
                raise FreeholdError("keeper.bad-params", "Params must be an object")
            return await self.call(name, params)

        return answer

    async def _follow(self, params: FollowParams) -> AsyncIterator[Any]:
        from freehold.history.service import changes_json

        if self._history is None:
            raise self._not_open()
        stream = self._history.stream
        # Where the reader begins, so that it can list the folders and miss nothing.
        yield {"sequence": stream.sequence if params.after is None else params.after, "relist": False, "items": []}
        async for changes in stream.follow(params.after):
            yield changes_json(changes)

    def _open(self) -> None:
        from freehold.history.history import History
        from freehold.history.service import HistoryService
        from freehold.history.settings import Settings

        folders = {"workspace": self._home.workspace, "home": self._home.agent_home}
        roots = {name: path for name, path in folders.items() if name in self._plan.history_folders}
        settings = Settings(
            quota=self._plan.history_quota, quiet=self._plan.history_quiet, ignore=self._plan.history_ignore
        )
        self._history = History(self._home.history, roots, settings, tell=self._tell)
        self._service = HistoryService(self._history)
        self._history.start()

    def _tell(self, notice: Notice) -> None:
        told = asdict(notice)
        data = {"code": told["code"], "message": told["message"], "hint": told["hint"]}
        self._loop.call_soon_threadsafe(self._record, "history.notice_given", data)

    def _opened(self) -> HistoryService:
        if self._service is None:
            raise self._not_open()
        return self._service

    @staticmethod
    def _not_open() -> FreeholdError:
        return FreeholdError("history.not-open", "The history is not open yet", hint="Try again in a moment")


def _handle(service: HistoryService, method: str, params: dict[str, Any]) -> Any:
    began = time.monotonic()
    try:
        return service.handle(method, params)
    finally:
        # What long work has taken and given back stays with the allocator otherwise, for ever.
        if time.monotonic() - began > LONG:
            ctypes.CDLL(None).malloc_trim(0)
