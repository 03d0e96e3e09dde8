"""Supervises one program: starts it, probes it, and starts it again when it ends."""

import asyncio
import contextlib

from freehold.errors import FreeholdError
from freehold.keeper.backoff import Backoff
from freehold.keeper.calls import ProgramState, ProgramStatus
from freehold.keeper.processes import read_resident_bytes
from freehold.keeper.program import Program, ProgramExit, ProgramRun
from freehold.keeper.recorder import RecordEvent
from freehold.keeper.settings import KeeperSettings
from freehold.keeper.state_signal import StateSignal


class SupervisedProgram:
    """Keeps one program running for as long as `supervise` runs, whatever the program does."""

    def __init__(self, program: Program, settings: KeeperSettings, record: RecordEvent, changes: StateSignal) -> None:
        self.program = program
        self.state: ProgramState = "stopped"
        self.run: ProgramRun | None = None
        self.last_error: str | None = None
        self.starts = 0
        self.restarts = 0
        self._settings = settings
        self._record = record
        self._changes = changes
        self._backoff = Backoff(settings.restart)
        self._since = settings.now()
        self._wake = asyncio.Event()
        self._wake_at: float | None = None
        self._no_restart = False
        self._restart_requested = False

    @property
    def name(self) -> str:
        return self.program.name

    def status(self) -> ProgramStatus:
        pid = self.run.pid if self.run is not None else None
        wait = None if self._wake_at is None else max(0.0, self._wake_at - _monotonic())
        return ProgramStatus(
            name=self.name,
            state=self.state,
            required=self.program.required,
            pid=pid,
            since=self._since,
            starts=self.starts,
            restarts=self.restarts,
            memory=read_resident_bytes(pid) if pid is not None else None,
            last_error=self.last_error,
            next_start_in=wait,
        )

    async def supervise(self) -> None:
        """Run the program again and again, until `stop_restarting`. Kills the current run when cancelled."""
        while not self._no_restart:
            began = _monotonic()
            ending = await self._run_once()
            if self._no_restart:
                break
            if self._restart_requested:
                self._restart_requested = False
                self._backoff.reset()
                self._record("program.restarted", {"program": self.name, "why": "asked for"})
                continue
            await self._wait_before_start(ending, _monotonic() - began)
            if not self._no_restart:
                self.restarts += 1
                self._record("program.restarted", {"program": self.name, "why": ending.words})
        self._set_state("stopped")

    def stop_restarting(self) -> None:
        """Do not start the program again. The caller ends the current run, if there is one."""
        self._no_restart = True
        self._wake.set()

    async def restart(self) -> None:
        """Stop the current run in order and start the next at once. Returns when it has started."""
        if self._no_restart:
            raise FreeholdError("keeper.stopping", "The keeper is stopping", hint="Start it again with: freehold up")
        self._restart_requested = True
        life = self.starts
        run = self.run
        if run is not None:
            self._set_state("stopping")
            await run.request_stop()
            try:
                async with asyncio.timeout(self._settings.stop.drain):
                    await run.wait_drained()
            except TimeoutError:
                self._record("program.straggled", {"program": self.name, "stage": "drain"})
                await run.kill()
        else:
            self._wake.set()
        await self._changes.wait_until(lambda: self.starts > life or self._no_restart)

    async def _run_once(self) -> ProgramExit:
        self._wake_at = None
        self.starts += 1
        try:
            found = await self._start()
            if found is None:
                return ProgramExit("was not needed")
            self.run = run = found
        except FreeholdError as error:
            return ProgramExit(f"could not start: {error.message}" + (f" ({error.hint})" if error.hint else ""))
        except OSError as error:
            return ProgramExit(f"could not start: {error}")
        began = _monotonic()
        try:
            if self._no_restart:
                await run.kill()
            self._record("program.started", {"program": self.name, "pid": run.pid, "life": self.starts})
            self._changes.notify()
            ending = await self._run_with_probes(run, began)
        finally:
            # A program that has ended is not ready, also before the next state is known.
            if self.state in ("ready", "unhealthy"):
                self._set_state("stopping")
            self.run = None
            # The run still exists only when this task was cancelled, because the keeper is ending.
            await asyncio.shield(run.kill())
        expected = self._no_restart or self._restart_requested
        data = {"program": self.name, "pid": run.pid, "how": ending.words, "lived": round(_monotonic() - began, 3)}
        self._record("program.stopped" if expected else "program.died", data)
        return ending

    async def _start(self) -> ProgramRun | None:
        """The run; None for a program that is started on demand, when a stop or a restart came first."""
        if not self.program.starts_on_demand:
            self._set_state("starting")
            return await self.program.start()
        self._wake.clear()
        if self._no_restart:
            return None
        starting = asyncio.ensure_future(self.program.start())
        waking = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.sleep(0)  # its first step: it listens when it is idle, or has failed
            if not starting.done():
                self._set_state("idle")
                self._changes.notify()  # it may have been idle before, and a restart waits for this start
            await asyncio.wait({starting, waking}, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                return None
            self._set_state("starting")
            return starting.result()
        finally:
            for task in (starting, waking):
                task.cancel()
            await asyncio.gather(starting, waking, return_exceptions=True)

    async def _run_with_probes(self, run: ProgramRun, began: float) -> ProgramExit:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._probe_until_lost(run, began))
            ending = await run.wait_ended()
            watch.cancel()
        return ending

    async def _probe_until_lost(self, run: ProgramRun, began: float) -> None:
        """Probe the program until it ends. Kills one that does not answer for too long."""
        settings = self._settings
        answered: float | None = None
        while True:
            try:
                async with asyncio.timeout(settings.probe_timeout):
                    age = await run.probe()
                answered = _monotonic() - age
                healthy = age <= settings.unhealthy_after
                if not healthy:
                    self.last_error = f"it has not answered for {age:.0f} s"
            except (FreeholdError, OSError, TimeoutError) as error:
                self.last_error = _describe_error(error)
                healthy = False
            silence = _monotonic() - (began if answered is None else answered)
            if healthy and self.state in ("starting", "unhealthy"):
                self._record("program.ready", {"program": self.name, "seconds": round(_monotonic() - began, 3)})
                self.last_error = None
                self._set_state("ready")
            elif silence > (settings.start_deadline if answered is None else settings.lost_after):
                self._record(
                    "program.lost", {"program": self.name, "silent": round(silence, 1), "why": self.last_error}
                )
                await run.kill()
                return
            elif not healthy and self.state == "ready" and silence > settings.unhealthy_after:
                self._record("program.unhealthy", {"program": self.name, "why": self.last_error})
                self._set_state("unhealthy")
            await asyncio.sleep(settings.starting_probe_interval if answered is None else settings.probe_interval)

    async def _wait_before_start(self, ending: ProgramExit, lived: float) -> None:
        was_looping = self._backoff.looping
        wait = self._backoff.record_death(_monotonic(), lived)
        self.last_error = ending.words
        if self._backoff.looping and not was_looping:
            self._record(
                "program.crash_looping", {"program": self.name, "why": ending.words, "retry_in": round(wait, 1)}
            )
        self._wake.clear()
        self._wake_at = _monotonic() + wait
        self._set_state("crash-looping" if self._backoff.looping else "waiting")
        if self._no_restart or self._restart_requested:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._wake.wait()
        self._restart_requested = False

    def _set_state(self, state: ProgramState) -> None:
        if state != self.state:
            self.state = state
            self._since = self._settings.now()
            self._changes.notify()


def _monotonic() -> float:
    return asyncio.get_running_loop().time()


def _describe_error(error: BaseException) -> str:
    if isinstance(error, FreeholdError):
        return error.message
    if isinstance(error, ConnectionRefusedError | FileNotFoundError) or (
        isinstance(error, TimeoutError) and not str(error)
    ):
        return "it does not answer"
    return str(error) or type(error).__name__
