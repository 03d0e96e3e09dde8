"""The keeper: boots a Freehold, restarts its programs when they end, and stops everything in order."""

import asyncio
import contextlib
import logging
import os
import secrets
import signal
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.api import KeeperApi
from freehold.keeper.boot import Boot
from freehold.keeper.boot_stages import Announce, BootStages
from freehold.keeper.plan_reader import PlanReader
from freehold.keeper.processes import identify_process
from freehold.keeper.recorder import EventRecorder
from freehold.keeper.seal import Seal, withdraw_seal, write_seal
from freehold.keeper.settings import KeeperSettings
from freehold.keeper.started_process import EarlyProcess
from freehold.keeper.state_signal import StateSignal
from freehold.keeper.supervised_program import SupervisedProgram
from freehold.keeper.supervisor import Supervisor
from freehold.system_folders import find_system_folder

log = logging.getLogger(__name__)
T = TypeVar("T")


class StopRequested(Exception):
    """A stop was requested during the boot."""


class Keeper:
    """Create one and `run` it once. `announce` is called with each event; a `plan_reader` and a gateway started earlier save time."""

    def __init__(
        self,
        home: Home,
        settings: KeeperSettings | None = None,
        announce: Announce | None = None,
        plan_reader: PlanReader | None = None,
        early_gateway: EarlyProcess | None = None,
    ) -> None:
        self.home = home
        self.settings = settings or KeeperSettings()
        self.boot_id = secrets.token_hex(8)
        self.changes = StateSignal()
        self.record = EventRecorder(home.timeline, self.settings.now)
        self.supervisor = Supervisor(self.settings, self.record, self.changes)
        self.early_gateway = early_gateway
        self.sealed_since: str | None = None
        self.api: KeeperApi | None = None
        self._listener = announce
        self._plan_reader = plan_reader or PlanReader(home)
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Returns after a requested stop; raises FreeholdError when the boot fails."""
        with self._signals():
            stages = BootStages(self.record, self._announce)
            try:
                async with contextlib.AsyncExitStack() as stack:
                    try:
                        await self._boot(stack, stages)
                        await self._stop.wait()
                    except StopRequested:
                        self.record("boot.stopped", {"stage": stages.current})
                    await self._stop_programs()
            except (FreeholdError, BaseExceptionGroup) as raised:
                error = _find_explained(raised)
                if error is None:
                    raise
                self.record("boot.failed", {"stage": stages.current, "code": error.code, "message": error.message})
                raise error from None
            finally:
                if self.home.root.is_dir() and find_system_folder(self.home.root) is None:
                    await asyncio.to_thread(self.record.write_now)
                self.record.close()
        self._announce("stopped", {})

    def request_stop(self) -> None:
        """The first call stops everything in order; the second one kills it at once."""
        if self._stop.is_set():
            self.supervisor.stop_waiting()
        self._stop.set()
        self.changes.notify()

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; cancels it and raises `StopRequested` as soon as a stop is requested."""
        async with asyncio.TaskGroup() as group:
            working = group.create_task(_catch_explained(work))
            stopping = group.create_task(self._stop.wait())
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not working.done():
                working.cancel()
        if working.cancelled() or self._stop.is_set():
            raise StopRequested
        result, error = working.result()
        if error is not None:
            raise error
        return result  # type: ignore[return-value]  # there is a result when there is no error

    async def wait_settled(self, supervised: SupervisedProgram) -> None:
        """Returns when the program answers, crashes again and again, or is late. The boot goes on in every case."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.settings.ready_deadline):
                await self.changes.wait_until(lambda: supervised.state in ("ready", "crash-looping"))

    async def wait_sealed(self) -> None:
        """Returns when there is a seal, or a required program crashes again and again, or it takes too long."""

        def is_crash_looping() -> bool:
            return any(one.state == "crash-looping" for one in self.supervisor.programs() if one.program.required)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.settings.ready_deadline):
                await self.changes.wait_until(lambda: self.sealed_since is not None or is_crash_looping())

    async def keep_seal(self) -> None:
        """Writes the seal when all required programs are ready, and removes it as soon as one is not."""
        me = identify_process(os.getpid())
        while True:
            missing = self.supervisor.missing_requirements()
            if not missing and self.sealed_since is None and not self.supervisor.stopping:
                since = (
                    datetime.fromtimestamp(self.settings.now(), UTC)
                    .isoformat(timespec="milliseconds")
                    .replace("+00:00", "Z")
                )
                names = ("history", *(one.name for one in self.supervisor.programs() if one.program.required))
                try:
                    write_seal(self.home, Seal(self.boot_id, since, names, os.getpid(), me.started if me else 0))
                except OSError as error:
                    log.warning("the seal cannot be written: %s", error)
                    await asyncio.sleep(1)
                    continue
                self.sealed_since = since
                self.record("seal.written", {"boot": self.boot_id, "requirements": list(names)})
                self._announce("sealed", {})
                self.changes.notify()
            elif missing and self.sealed_since is not None:
                self._unseal(missing)
                self._announce("lost", {"missing": missing})
            await self.changes.wait_for_change()

    async def _boot(self, stack: contextlib.AsyncExitStack, stages: BootStages) -> None:
        self.record("boot.started", {"boot": self.boot_id, "pid": os.getpid()})
        with stages.stage("manifest"):
            stack.callback(self._plan_reader.close)
            if self.early_gateway is not None:
                stack.callback(self.early_gateway.close)
            plan = await self.unless_stopped(self._plan_reader.read_plan())
        api = await Boot(self, plan, stages, stack).run()
        seconds = round(asyncio.get_running_loop().time() - stages.began, 4)
        sealed = self.sealed_since is not None
        self.record("boot.finished", {"boot": self.boot_id, "seconds": seconds, "sealed": sealed})
        self._announce("ready" if self.sealed_since else "not-ready", await api.describe_start() | {"seconds": seconds})

    def _announce(self, event: str, data: dict[str, Any]) -> None:
        try:
            if self._listener is not None:
                self._listener(event, data)
        except OSError:  # the terminal or the pipe was closed
            self._listener = None

    def _unseal(self, missing: list[str]) -> None:
        withdraw_seal(self.home)
        self.sealed_since = None
        self.record("seal.withdrawn", {"boot": self.boot_id, "missing": missing})

    async def _stop_programs(self) -> None:
        self._announce("stopping", {})
        self.record("keeper.stopping", {"boot": self.boot_id})
        if self.sealed_since is not None:
            self._unseal(["the keeper is stopping"])
        for report in await self.supervisor.stop(self._write_last):
            if report.stragglers:
                self._announce("straggling", {"stage": report.stage, "stragglers": list(report.stragglers)})
        self.record("keeper.stopped", {"boot": self.boot_id})

    async def _write_last(self) -> None:
        """The last snapshot, and all events of the timeline."""
        if self.api is not None and self.api.history is not None:
            await self.api.history.record_at_stop()
        await self.record.wait_flushed()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        for number in numbers:
            loop.add_signal_handler(number, self.request_stop)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


async def _catch_explained(work: Coroutine[Any, Any, T]) -> tuple[T | None, FreeholdError | None]:
    """Returns a FreeholdError instead of raising it, so that no task group wraps it."""
    try:
        return await work, None
    except FreeholdError as error:
        return None, error


def _find_explained(raised: BaseException) -> FreeholdError | None:
    """The FreeholdError in what the task groups raised; None when there is another error in it, which is a bug."""
    if isinstance(raised, FreeholdError):
        return raised
    if isinstance(raised, BaseExceptionGroup):
        found = [_find_explained(each) for each in raised.exceptions]
        return found[0] if all(found) else None
    return None
