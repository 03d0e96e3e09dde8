"""Computers beside `main`: started and stopped by calls, each with its own folders, limits and life.

Nothing of them is stored. One that ends is not started again, and all end with the keeper.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from freehold.errors import FreeholdError
from freehold.home import MAIN_COMPUTER, Home
from freehold.images.artifacts import ImageFolder
from freehold.keeper import calls
from freehold.keeper.computer_program import ComputerProgram, ComputerRun
from freehold.keeper.log_writer import LogWriter
from freehold.keeper.methods import RpcMethods
from freehold.keeper.recorder import RecordEvent
from freehold.typed_call import NoResult

if TYPE_CHECKING:
    from freehold.computer.contract.spec import Limits

NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
FLEET_BACKEND = "ray"
MAX_LOST = 1000
"""Lost computers that nobody has asked for yet."""
START_SECONDS = 60.0
"""How long a computer may take to start on this machine. In a fleet it waits for room as long as that takes."""


@dataclass
class RunningComputer:
    """A temporary computer. `own_folder` holds the folders that the caller did not give, and is removed with it."""

    program: ComputerProgram
    run: ComputerRun
    own_folder: Path
    removed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class StartingComputer:
    """`folders` are those of the caller that it has taken already. `waiting` is set while it waits for room in a fleet."""

    folders: list[Path] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: asyncio.Timeout | None = None

    def stop_waiting(self) -> None:
        if self.waiting is not None:
            self.waiting.reschedule(asyncio.get_running_loop().time())


class TemporaryComputers:
    """`serve` it while the keeper runs. `main` is listed with the others, and is not started or stopped here."""

    def __init__(
        self,
        home: Home,
        backend: str,
        engine_host: str | None,
        shown: Mapping[str, Path],
        record: RecordEvent,
        log_writer: LogWriter,
        *,
        runs_in_fleet: bool = False,
    ) -> None:
        """`shown`: folders by their place in a computer for agents, read-only. `runs_in_fleet`: those with a working
        copy are on other machines."""
        self._home = home
        self._shown = shown
        self._backend = backend
        self._engine_host = engine_host
        self._runs_in_fleet = runs_in_fleet
        self._record = record
        self._log_writer = log_writer
        self._main: ComputerProgram | None = None
        self._running: dict[str, RunningComputer] = {}
        self._starting: dict[str, StartingComputer] = {}
        self._lost: dict[str, str] = {}
        self._group: asyncio.TaskGroup | None = None

    def register(self, methods: RpcMethods) -> None:
        methods.add_call(calls.StartComputer, self._start)
        methods.add_call(calls.StopComputer, self._stop)
        methods.add_call(calls.ListComputers, self._list)
        methods.add_call(calls.RemoveKeptHome, self._remove_kept_home)

    @contextlib.asynccontextmanager
    async def serve(self, main: ComputerProgram) -> AsyncIterator[None]:
        """Computers can run while this is open; those that still run at its end are stopped."""
        self._main = main
        await asyncio.to_thread(self._remove_leftovers)
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                group, self._group = self._group, None
                for starting in self._starting.values():
                    starting.stop_waiting()
                for running in list(self._running.values()):
                    group.create_task(running.run.wait_drained())

    def _remove_leftovers(self) -> None:
        """What a keeper that was killed left behind. Its computers ended with it."""
        from freehold.computer.library.removal import remove_tree

        for socket in self._home.run.glob(f"{self._home.computer_socket('*').name}*"):
            socket.unlink(missing_ok=True)
        remove_tree(self._home.temporary_computers)

    async def _start(self, call: calls.StartComputer) -> calls.ComputerInfo:
        if self._group is None:
            raise FreeholdError("keeper.stopping", "The keeper is starting or stopping", hint="Try again in a moment")
        self._check_name(call.name)
        self._lost.pop(call.name, None)
        starting = self._starting[call.name] = StartingComputer()
        try:
            running = await self._launch(call, starting)
        finally:
            del self._starting[call.name]
            starting.started.set()
        self._running[call.name] = running
        self._record("computer.started", {"computer": call.name, "pid": running.run.pid}, who=call.who)
        if self._group is None:  # the keeper began to stop meanwhile
            await running.run.wait_drained()
            await self._remove_ended(call.name, running)
            raise FreeholdError("keeper.stopping", "The keeper is stopping")
        self._group.create_task(self._remove_ended(call.name, running))
        return _describe(running.program)

    async def _launch(self, call: calls.StartComputer, starting: StartingComputer) -> RunningComputer:
        from freehold.computer.contract.spec import ComputerSpec, Mount
        from freehold.computer.library.removal import remove_tree

        shown = tuple(Mount(folder, place) for place, folder in self._shown.items())
        own_folder = self._home.temporary_computers / call.name
        limits = _read_limits(call.limits)
        workspace, home = self._folder(call.workspace), self._folder(call.home)
        if call.copy is not None:
            workspace = self._find_copy(call.copy)
        if call.kept_home is not None:
            home = self._find_kept_home(call.kept_home)
        starting.folders += [folder for folder in (workspace, home) if folder is not None]
        backend, host = self._choose_backend(call)
        images = ImageFolder(self._home.images, self._home.image_lock)
        image = await asyncio.to_thread(images.resolve_checked, call.image, backend)
        own_folder.mkdir(parents=True, mode=0o700)
        try:
            for name in ("workspace", "home"):
                (own_folder / name).mkdir()
            program = ComputerProgram(
                ComputerSpec(
                    workspace or own_folder / "workspace",
                    home or own_folder / "home",
                    limits=limits,
                    mounts=shown if call.agents else (),
                    image=image,
                    hostname=call.name,
                ),
                self._home.computer_socket(call.name),
                self._record,
                self._log_writer,
                backend=backend,
                engine_host=host,
                computer=call.name,
                required=False,
            )
            return RunningComputer(program, await _start_program(program, starting), own_folder)
        except BaseException:
            await asyncio.to_thread(remove_tree, own_folder)
            raise

    def _choose_backend(self, call: calls.StartComputer) -> tuple[str, str | None]:
        """Its name, and where it is reached. The quota of a fleet counts for each session."""
        if self._runs_in_fleet and call.copy is not None:
            return FLEET_BACKEND, f"ray://{self._home.root}?who={quote(call.who)}"
        return self._backend, self._engine_host

    async def _stop(self, call: calls.StopComputer) -> calls.ComputerInfo:
        starting = self._starting.get(call.name)
        if starting is not None:
            starting.stop_waiting()
            await starting.started.wait()
        running = self._running.get(call.name)
        if running is None:
            self._refuse_lost(call.name)
            names = ", ".join(self._running) or "none"
            hint = "Stop it with freehold down" if call.name == MAIN_COMPUTER else f"Temporary computers: {names}"
            raise FreeholdError("computer.not-temporary", f"There is no temporary computer {call.name!r}", hint=hint)
        info = _describe(running.program)
        await running.run.wait_drained()
        await running.removed.wait()
        self._refuse_lost(call.name)
        return info

    def _refuse_lost(self, name: str) -> None:
        """Told once: it did not end, and may be started again with the files that came back."""
        why = self._lost.pop(name, "")
        if why:
            raise FreeholdError("computer.lost", why, hint="Start it again: it goes on from the last files")

    async def _list(self, _: calls.ListComputers) -> calls.ComputerList:
        programs = [] if self._main is None else [self._main]
        programs += [running.program for running in self._running.values()]
        return calls.ComputerList(tuple(_describe(program) for program in programs))

    async def _remove_ended(self, name: str, running: RunningComputer) -> None:
        """Wait for the end of a computer, then remove what it had on the host."""
        from freehold.computer.library.removal import remove_tree

        ending = await running.run.wait_ended()
        running.program.socket.unlink(missing_ok=True)
        await asyncio.to_thread(remove_tree, running.own_folder)
        del self._running[name]
        why = running.run.lost_because
        if why:
            self._lost[name] = why
            while len(self._lost) > MAX_LOST:
                del self._lost[next(iter(self._lost))]
        self._record("computer.ended", {"computer": name, "how": why or ending.words})
        running.removed.set()

    def _check_name(self, name: str) -> None:
        if not NAME.fullmatch(name):
            raise FreeholdError(
                "computer.bad-name",
                f"{name[:100]!r} is not a name for a computer",
                hint="Use up to 32 letters a-z, digits and hyphens, and begin with a letter",
            )
        if name == MAIN_COMPUTER or name in self._running or name in self._starting:
            raise FreeholdError(
                "computer.name-taken", f"A computer {name!r} runs already", hint="Choose another name, or stop it first"
            )

    def _find_copy(self, name: str) -> Path:
        """The workspace in a working copy. No two computers share one."""
        workspace = self._home.copies / name / "workspace"
        if not NAME.fullmatch(name) or not workspace.is_dir():
            raise FreeholdError("computer.no-folder", f"There is no working copy {name[:100]!r}")
        if workspace in self._taken_folders():
            raise FreeholdError("computer.folder-in-use", f"A computer works in the copy {name!r} already")
        return workspace

    def _find_kept_home(self, name: str) -> Path:
        """Made when it is missing. No two computers share one."""
        folder = self._name_kept_home(name)
        if folder in self._taken_folders():
            raise FreeholdError("computer.folder-in-use", f"A computer has the home {name!r} already")
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        return folder

    def _name_kept_home(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise FreeholdError("computer.no-folder", f"{name[:100]!r} is not the name of a kept home")
        return self._home.kept_homes / name

    async def _remove_kept_home(self, call: calls.RemoveKeptHome) -> NoResult:
        from freehold.computer.library.removal import remove_tree

        folder = self._name_kept_home(call.name)
        if folder in self._taken_folders():
            raise FreeholdError("computer.folder-in-use", f"A computer has the home {call.name!r}")
        await asyncio.to_thread(remove_tree, folder)
        return NoResult()

    def _taken_folders(self) -> list[Path]:
        """The folders of the computers that run and of those that start."""
        specs = [one.program.spec for one in self._running.values()]
        running = [folder for spec in specs for folder in (spec.workspace, spec.home)]
        return running + [folder for one in self._starting.values() for folder in one.folders]

    def _folder(self, chosen: str | None) -> Path | None:
        """A folder of the caller. It must not be in use by this Freehold: one computer would own the files of another."""
        if chosen is None:
            return None
        folder = Path(chosen).expanduser().absolute()
        if not folder.is_dir():
            raise FreeholdError("computer.no-folder", f"{folder} is not a folder", hint=f"mkdir -p {folder}")
        in_use = [self._home.root, self._home.run, *self._taken_folders()]
        real = folder.resolve()
        for other in in_use:
            used = other.resolve()
            if real.is_relative_to(used) or used.is_relative_to(real):
                raise FreeholdError(
                    "computer.folder-in-use",
                    f"{folder} and {other}, which this Freehold uses, overlap",
                    hint="Give the computer a folder of its own",
                )
        return folder


async def _start_program(program: ComputerProgram, starting: StartingComputer) -> ComputerRun:
    """Raises `computer.ended` when it is stopped while it waits for room, and `computer.cannot-start`."""
    waits = program.backend == FLEET_BACKEND
    try:
        async with asyncio.timeout(None if waits else START_SECONDS) as limit:
            starting.waiting = limit if waits else None
            try:
                return await program.start()
            finally:
                starting.waiting = None
    except TimeoutError:
        if waits:
            raise FreeholdError("computer.ended", "The computer was stopped before it had room") from None
        raise FreeholdError(
            "computer.cannot-start",
            f"The computer did not start within {START_SECONDS:g} s",
            hint="See why with: freehold logs keeper",
        ) from None


def _read_limits(given: dict[str, float]) -> "Limits":
    from freehold.computer.contract.spec import Limits

    known = {field.name: field.type for field in fields(Limits)}
    values: dict[str, float] = {}
    for name, value in given.items():
        if name not in known or value <= 0:
            raise FreeholdError(
                "computer.bad-limit",
                f"{name[:100]} = {value:g} is not a limit",
                hint=f"The limits are numbers above 0: {', '.join(known)}",
            )
        values[name] = value if known[name] in (float, "float") else int(value)
    return Limits(**values)  # type: ignore[arg-type]  # whole numbers are converted above


def _describe(program: ComputerProgram) -> calls.ComputerInfo:
    status = program.status()
    return calls.ComputerInfo(
        name=program.computer,
        socket=str(program.socket),
        workspace=str(program.spec.workspace),
        home=str(program.spec.home),
        limits=asdict(program.spec.limits),
        isolation=status.isolation,
        usage=status.usage,
    )
