"""One program and its lives: started, asked how it is, started again when it dies."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any, Literal

from freehold.errors import FreeholdError
from freehold.keeper.backoff import Backoff
from freehold.keeper.changes import Changes
from freehold.keeper.processes import resident_bytes
from freehold.keeper.program import Ending, Program, Run
from freehold.keeper.recorder import Record
from freehold.keeper.settings import KeeperSettings

State = Literal["stopped", "starting", "ready", "unhealthy", "waiting", "crash-looping", "stopping"]


@dataclass(frozen=True)
class ProgramStatus:
    """What is known of a program now. `since` is when it came into this state, in seconds of the wall clock."""

    name: str
    state: State
    required: bool
    pid: int | None
    since: float
    lives: int
    restarts: int
    memory: int | None
    last_error: str | None
    next_start_in: float | None

    def as_json(self) -> dict[str, Any]:
        return dict(self.__dict__)


class KeptProgram:
    """Keeps one program alive for as long as `keep` runs. Dies of nothing that the program does."""

    def __init__(self, program: Program, settings: KeeperSettings, record: Record, changes: Changes) -> None:
        self.program = program
        self.state: State = "stopped"
        self.run: Run | None = None
        self.last_error: str | None = None
        self.lives = 0
        self.restarts = 0
        self._settings = settings
        self._record = record
        self._changes = changes
        self._backoff = Backoff(settings.restart)
        self._since = settings.now()
        self._wake = asyncio.Event()
        self._wake_at: float | None = None
        self._leaving = False
        self._asked = False

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
            lives=self.lives,
            restarts=self.restarts,
            memory=resident_bytes(pid) if pid is not None else None,
            last_error=self.last_error,
            next_start_in=wait,
        )

    async def keep(self) -> None:
        """Life after life, until `leave`. Kills the current life when cancelled."""
        while not self._leaving:
            began = _monotonic()
            ending = await self._live()
            if self._leaving:
                break
            if self._asked:
                self._asked = False
                self._backoff.forget()
                self._record("program.restarted", {"program": self.name, "why": "asked for"})
                continue
            await self._rest(ending, _monotonic() - began)
            if not self._leaving:
                self.restarts += 1
                self._record("program.restarted", {"program": self.name, "why": ending.words})
        self._become("stopped")

    def leave(self) -> None:
        """No more lives. The current one, if any, is the caller's to end."""
        self._leaving = True
        self._wake.set()

    async def restart(self) -> None:
        """End the current life in good order and begin the next without waiting. Returns when it has begun."""
        if self._leaving:
            raise FreeholdError("keeper.stopping", "The keeper is stopping", hint="Start it again with: freehold up")
        self._asked = True
        life = self.lives
        run = self.run
        if run is not None:
            self._become("stopping")
            await run.refuse()
            try:
                async with asyncio.timeout(self._settings.stop.drain):
                    await run.drain()
            except TimeoutError:
                self._record("program.straggled", {"program": self.name, "stage": "drain"})
                await run.kill()
        else:
            self._wake.set()
        await self._changes.until(lambda: self.lives > life or self._leaving)

    async def _live(self) -> Ending:
        self._become("starting")
        self._wake_at = None
        began = _monotonic()
        self.lives += 1
        try:
            self.run = run = await self.program.start()
        except FreeholdError as error:
            return Ending(f"could not start: {error.message}" + (f" ({error.hint})" if error.hint else ""))
        except OSError as error:
            return Ending(f"could not start: {error}")
        try:
            if self._leaving:
                await run.kill()
            self._record("program.started", {"program": self.name, "pid": run.pid, "life": self.lives})
            self._changes.tell()
            ending = await self._watched(run, began)
        finally:
            # What is gone is not ready, not even until its next life is decided on.
            if self.state in ("ready", "unhealthy"):
                self._become("stopping")
            self.run = None
            # Reached with a living run only when cancelled: the keeper itself is being torn down.
            await asyncio.shield(run.kill())
        expected = self._leaving or self._asked
        data = {"program": self.name, "pid": run.pid, "how": ending.words, "lived": round(_monotonic() - began, 3)}
        self._record("program.stopped" if expected else "program.died", data)
        return ending

    async def _watched(self, run: Run, began: float) -> Ending:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch(run, began))
            ending = await run.ended()
            watch.cancel()
        return ending

    async def _watch(self, run: Run, began: float) -> None:
        """Ask until it answers, then go on asking; kill what stays silent for too long."""
        settings = self._settings
        answered: float | None = None
        while True:
            try:
                async with asyncio.timeout(settings.probe_patience):
                    age = await run.probe()
                answered = _monotonic() - age
                well = age <= settings.unhealthy_after
                if not well:
                    self.last_error = f"it has been silent for {age:.0f} s"
            except (FreeholdError, OSError, TimeoutError) as error:
                self.last_error = _words(error)
                well = False
            silence = _monotonic() - (began if answered is None else answered)
            if well and self.state in ("starting", "unhealthy"):
                self._record("program.ready", {"program": self.name, "seconds": round(_monotonic() - began, 3)})
                self.last_error = None
                self._become("ready")
            elif silence > (settings.start_deadline if answered is None else settings.lost_after):
                self._record(
                    "program.lost", {"program": self.name, "silent": round(silence, 1), "why": self.last_error}
                )
                await run.kill()
                return
            elif not well and self.state == "ready" and silence > settings.unhealthy_after:
                self._record("program.unhealthy", {"program": self.name, "why": self.last_error})
                self._become("unhealthy")
            await asyncio.sleep(settings.starting_probe if answered is None else settings.probe)

    async def _rest(self, ending: Ending, lived: float) -> None:
        was_looping = self._backoff.looping
        wait = self._backoff.died(_monotonic(), lived)
        self.last_error = ending.words
        if self._backoff.looping and not was_looping:
            self._record(
                "program.crash_looping", {"program": self.name, "why": ending.words, "retry_in": round(wait, 1)}
            )
        self._wake.clear()
        self._wake_at = _monotonic() + wait
        self._become("crash-looping" if self._backoff.looping else "waiting")
        if self._leaving or self._asked:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._wake.wait()
        self._asked = False

    def _become(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self._since = self._settings.now()
            self._changes.tell()


def _monotonic() -> float:
    return asyncio.get_running_loop().time()


def _words(error: BaseException) -> str:
    if isinstance(error, FreeholdError):
        return error.message
    if isinstance(error, ConnectionRefusedError | FileNotFoundError) or (
        isinstance(error, TimeoutError) and not str(error)
    ):
        return "it does not answer"
    return str(error) or type(error).__name__
