"""The library's front door: a sealed computer to run commands in."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from freehold.computer import process as processes
from freehold.computer.answers import number, whole
from freehold.computer.backend import Backend, LimitEvent, Machine, Usage
from freehold.computer.batch import ask
from freehold.computer.connection import Connection, State
from freehold.computer.files import Files
from freehold.computer.frames import protocol_error
from freehold.computer.launch import launch
from freehold.computer.pool import Pool
from freehold.computer.process import Command, Process, Result, per_command
from freehold.computer.question import ask_shortly
from freehold.computer.removal import remove_tree
from freehold.computer.roster import Node, Running, Stats, make_tree, read_holder, read_running
from freehold.computer.spec import ComputerSpec, Limits, Mount
from freehold.computer.terminal import Terminal, TerminalInfo, read_terminal
from freehold.computer.tunnel import Handler, Listening, Tunnel
from freehold.errors import FreeholdError

_PATIENCE = 15.0
"""Seconds beyond a command's own limit after which a guest that did not end it is taken for broken."""


class Opening:
    """`await` it for a computer that you close yourself, or use it with `async with`."""

    def __init__(self, open_computer: Callable[[], Awaitable["Computer"]]) -> None:
        self._open = open_computer
        self._computer: Computer | None = None

    def __await__(self) -> Generator[Any, None, "Computer"]:
        return self._open().__await__()

    async def __aenter__(self) -> "Computer":
        self._computer = await self._open()
        return self._computer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._computer is not None:
            await self._computer.close()


class Computer:
    """A sealed computer, the owner's or a throw-away one.

    Get one from `Computer.start` (its life is yours) or `Computer.connect` (it is somebody else's). Everything that
    is started through it ends with it, terminals of a connected computer excepted.
    """

    def __init__(
        self, connection: Connection, limits: Limits, machine: Machine | None = None, folder: Path | None = None
    ) -> None:
        self._connection = connection
        self._folder = folder
        self._grace = 5.0
        self._listening: list[Listening] = []
        self.files = Files(connection)
        self.limits = limits
        self.machine = machine
        self._reached: LimitEvent | None = None
        self._reached_count = 0
        if machine is not None:
            machine.subscribe(self._note)

    @classmethod
    def start(
        cls,
        workspace: str | Path | None = None,
        home: str | Path | None = None,
        *,
        limits: Limits | None = None,
        mounts: Sequence[Mount] = (),
        environment: Mapping[str, str] | None = None,
        image: str | Path | None = None,
        hostname: str = "freehold",
        backend: Backend | None = None,
    ) -> Opening:
        """Start a computer. Folders that are not given are made, and removed again when it is closed."""

        async def open_computer() -> Computer:
            folder = Path(tempfile.mkdtemp(prefix="freehold-"))
            try:
                spec = ComputerSpec(
                    workspace=_place(workspace, folder / "workspace"),
                    home=_place(home, folder / "home"),
                    limits=limits or Limits(),
                    mounts=tuple(mounts),
                    environment=dict(environment or {}),
                    image=Path(image) if image is not None else None,
                    hostname=hostname,
                )
                machine = await launch(spec, folder / "link", backend)
                try:
                    connection = Connection(folder / "link", reconnect=False)
                    await _open_or_tell(connection, machine)
                except BaseException:
                    await machine.stop(0)
                    raise
            except BaseException:
                remove_tree(folder)
                raise
            computer = cls(connection, spec.limits, machine, folder)
            if workspace is None and home is None:
                computer._grace = 0.0  # nothing in it will be missed
            return computer

        return Opening(open_computer)

    @classmethod
    def connect(cls, socket_path: str | Path, *, limits: Limits | None = None) -> Opening:
        """Reach a computer that runs already. The link is made again whenever it is lost, until `close`."""

        async def open_computer() -> Computer:
            connection = Connection(Path(socket_path))
            await connection.open()
            return cls(connection, limits or Limits())

        return Opening(open_computer)

    @classmethod
    def pool(
        cls, size: int, *, limits: Limits | None = None, mounts: Sequence[Mount] = (), backend: Backend | None = None
    ) -> Pool:
        """Warm throw-away computers for short jobs: `async with Computer.pool(4) as pool`."""

        async def start() -> Computer:
            return await cls.start(limits=limits, mounts=mounts, backend=backend)

        return Pool(start, size)

    @property
    def socket_path(self) -> Path:
        """Where others may connect to it, as `Computer.connect` does."""
        return self._connection.path

    @property
    def alive(self) -> bool:
        """Whether there is a link to it now."""
        return self._connection.live

    @property
    def state(self) -> State:
        return self._connection.state

    def subscribe(self, callback: Callable[[State, FreeholdError | None], None]) -> Callable[[], None]:
        """Be told of each change of `state`, with its reason; returns the way to stop that."""
        return self._connection.subscribe(callback)

    async def wait_connected(self) -> None:
        """Return as soon as the computer can be reached (again)."""
        await self._connection.wait_connected()

    async def run(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str | None] | None = None,
        stdin: bytes | str | None = None,
        timeout: float | None = None,
        limits: Limits | None = None,
        apart: str | None = None,
    ) -> Result:
        """Run a command to its end. Text is given to /bin/sh, a sequence is started as it is.

        At the timeout (the limit on wall time, unless a shorter one is given) it is ended with everything it started,
        and the result says so; so it is when the awaiting task is cancelled. What it leaves running in the background
        of its own accord keeps running. `apart` is as for `spawn`.
        """
        asked, limits = limits, limits or self.limits
        time_limit = min(timeout, limits.wall_time) if timeout is not None else float(limits.wall_time)
        data = stdin.encode() if isinstance(stdin, str) else stdin
        request = processes.spawn_request(
            command,
            cwd,
            env,
            {"cpu_time": limits.cpu_time} if asked is None else per_command(asked),
            timeout=time_limit,
            capture=limits.output,
            quiet=True,
            stdin=True if data is not None else None,
            apart=apart,
        )
        already = self._reached_count
        result = await processes.run(self._connection.link, request, data, limits.output, time_limit + _PATIENCE)
        if self.machine is not None and not result.ok and result.limit is None:
            self.machine.usage()  # delivers what the kernel has counted meanwhile
            if self._reached is not None and self._reached_count > already:
                return replace(result, limit=self._reached.limit)
        return result

    async def spawn(
        self,
        command: Command,
        *,
        cwd: str | None = None,
        env: Mapping[str, str | None] | None = None,
        timeout: float | None = None,
        limits: Limits | None = None,
        merge_stderr: bool = False,
        apart: str | None = None,
    ) -> Process:
        """Start a command and get its streams. It has no time limit unless one is given.

        Commands that name the same `apart` may read and signal each other; no others may read or signal them but the
        owner's, which name none and may signal. Where the kernel has no Landlock, all are together.
        """
        request = processes.spawn_request(
            command, cwd, env, per_command(limits), timeout=timeout, stdin=True, merge=merge_stderr or None, apart=apart
        )
        return await Process.start(self._connection.link, request)

    async def terminal(
        self,
        command: Command = ("/bin/bash", "-l"),
        *,
        rows: int = 24,
        cols: int = 80,
        cwd: str | None = None,
        env: Mapping[str, str | None] | None = None,
        scrollback: int | None = None,
    ) -> Terminal:
        """Open a terminal. It lives until its program ends or it is closed, whatever becomes of the link."""
        request = processes.spawn_request(command, cwd, env, None, rows=rows, cols=cols, scrollback=scrollback)
        return await Terminal.open(self._connection.link, {**request, "op": "terminal"})

    async def attach(self, terminal: str, *, since: int | None = None) -> Terminal:
        """Watch a terminal again: all of its scrollback, or what came after `since` (a former view's `position`)."""
        return await Terminal.open(self._connection.link, {"op": "terminal.attach", "id": terminal, "since": since})

    async def terminals(self) -> list[TerminalInfo]:
        answer = await ask_shortly(self._connection.link, {"op": "terminals"})
        if not isinstance(answer, list):
            raise protocol_error("a list of terminals that is none")
        return [read_terminal(row) for row in answer]

    async def close_terminal(self, terminal: str) -> None:
        """End everything that runs in it."""
        await ask_shortly(self._connection.link, {"op": "terminal.close", "id": terminal})

    async def processes(self) -> list[Running]:
        """Everything that runs inside, the guest itself left out."""
        (outcome,) = await ask(self._connection.link, {"op": "processes"}, 1)
        outcome.value()
        return [read_running(row) for row in outcome.rows]

    async def socket_holders(self, sockets: Collection[int]) -> dict[int, int]:
        """For each of these sockets, by its number in /proc/net, a process that has it open; those of nobody are left out."""
        (outcome,) = await ask(self._connection.link, {"op": "holders", "sockets": list(sockets)}, 1)
        outcome.value()
        return dict(map(read_holder, outcome.rows))

    async def process_tree(self) -> list[Node]:
        return make_tree(await self.processes())

    async def stats(self) -> Stats:
        """What is used now, against the limits. The kernel's own count where this side has it, else the guest's."""
        answer = await ask_shortly(self._connection.link, {"op": "stats"})
        if not isinstance(answer, dict):
            raise protocol_error("figures that are none")
        known = self.machine.usage() if self.machine is not None else Usage()
        return Stats(
            cpu_seconds=known.cpu_seconds if known.cpu_seconds is not None else number(answer, "cpu"),
            memory=known.memory if known.memory is not None else whole(answer, "memory"),
            processes=known.processes if known.processes is not None else whole(answer, "processes"),
            disk=known.disk,
            inodes=known.inodes,
            limits=self.limits,
        )

    async def forward(self, port: int | str) -> Tunnel:
        """A stream to a port on the computer's loopback, or to a unix socket there when given a path."""
        return await Tunnel.connect(self._connection.link, {"op": "forward", **_where(port)})

    async def listen(self, port: int | str, handler: Handler) -> Listening:
        """Listen inside on a loopback port (0 chooses one) or a unix socket's path; each connection comes to `handler`.

        It is listened on again after each reconnection, until the `Listening` or the computer is closed.
        """
        listening = Listening(self._connection, {"op": "listen", **_where(port)}, handler)
        await listening.open()
        self._listening = [one for one in self._listening if not one.closed] + [listening]
        return listening

    def _note(self, event: LimitEvent) -> None:
        if event.kind == "reached":
            self._reached_count += 1
            self._reached = event

    async def close(self) -> None:
        """Drop the link; a computer that was started here is stopped, and its throw-away folders are removed. Idempotent."""
        for listening in self._listening:
            await listening.close()
        await self._connection.close()
        if self.machine is not None:
            await self.machine.stop(self._grace)
        if self._folder is not None:
            await asyncio.to_thread(remove_tree, self._folder)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _where(port: int | str) -> dict[str, int | str]:
    return {"path": port} if isinstance(port, str) else {"port": port}


def _place(chosen: str | Path | None, otherwise: Path) -> Path:
    if chosen is None:
        otherwise.mkdir()
        return otherwise
    place = Path(chosen).expanduser().absolute()
    if not place.is_dir():
        raise FreeholdError("computer.no-folder", f"{place} is not a folder", hint=f"mkdir -p {place}")
    return place


async def _open_or_tell(connection: Connection, machine: Machine) -> None:
    """Connect, or say that the machine ended before it could be reached."""
    opening = asyncio.ensure_future(connection.open())
    ending = asyncio.ensure_future(machine.wait())
    try:
        await asyncio.wait({opening, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():
            raise FreeholdError(
                "computer.ended",
                f"The computer ended as it started (status {ending.result()})",
                hint="freehold doctor tells what is missing",
            )
        await opening
    finally:
        for task in (opening, ending):
            task.cancel()
        await asyncio.gather(opening, ending, return_exceptions=True)
