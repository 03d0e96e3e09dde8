"""`Computer`: start a sealed computer or connect to one, and use it."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from freehold.computer.contract.backend import Backend, Machine, RemoteParts, read_usage, read_waits_for
from freehold.computer.contract.report import LimitEvent, MachineUsage
from freehold.computer.contract.spec import ComputerSpec, Device, Limits, Mount
from freehold.computer.contract.transport import SocketTransport, Transport
from freehold.computer.library import process as processes
from freehold.computer.library.batch import send_batch
from freehold.computer.library.connection import ComputerConnection, LinkState
from freehold.computer.library.files import Files
from freehold.computer.library.frames import protocol_error
from freehold.computer.library.launch import launch
from freehold.computer.library.pool import ComputerPool
from freehold.computer.library.process import Command, CommandResult, Process, describe_command_limits
from freehold.computer.library.process_list import (
    ComputerStats,
    EndedSessions,
    ListeningSocket,
    MemoryUse,
    ProcessNode,
    RunningProcess,
    build_process_tree,
    read_ended_sessions,
    read_listening_socket,
    read_memory_use,
    read_running_process,
    read_socket_owner,
)
from freehold.computer.library.removal import remove_tree
from freehold.computer.library.reply import read_int, read_number
from freehold.computer.library.request import send_request
from freehold.computer.library.terminal import Terminal, TerminalInfo, read_terminal
from freehold.computer.library.tunnel import ComputerListener, Tunnel, TunnelHandler
from freehold.computer.registry import find_backend
from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from freehold.computer.batch.batch import Batch, Report
    from freehold.computer.isolates.language import CodeLanguage, LanguageName

_TIME_LIMIT_MARGIN = 15.0
"""Seconds after a command's time limit at which a guest that has not ended it counts as broken."""
_END_TIMEOUT = 6.0
"""Seconds in which the guest answers what it ended. It waits 3 s itself for killed processes to disappear."""


class PendingComputer:
    """A computer that is not open yet. `await` it and close the computer yourself, or use it with `async with`."""

    def __init__(
        self, open_computer: Callable[[], Awaitable["Computer"]], read_waits_for: Callable[[], str] = str
    ) -> None:
        self._open = open_computer
        self._read_waits_for = read_waits_for
        self._computer: Computer | None = None

    @property
    def waits_for(self) -> str:
        """Why it has no room yet in a fleet. Empty while it does not wait."""
        return self._read_waits_for()

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
    """A sealed computer: the owner's `main` computer, or a temporary one.

    `Computer.start` starts one that ends when this object is closed. `Computer.connect` uses one that already runs.
    Processes that are started through this object end with it; terminals of a connected computer stay.
    """

    def __init__(
        self, connection: ComputerConnection, limits: Limits, machine: Machine | None = None, folder: Path | None = None
    ) -> None:
        self._connection = connection
        self._folder = folder
        self._grace = 5.0
        self._listening: list[ComputerListener] = []
        self.files = Files(connection)
        self.limits = limits
        self.machine = machine
        self._reached: LimitEvent | None = None
        self._reached_count = 0
        if machine is not None:
            machine.subscribe(self._count_limit_event)

    @classmethod
    def start(
        cls,
        workspace: str | Path | None = None,
        home: str | Path | None = None,
        *,
        limits: Limits | None = None,
        mounts: Sequence[Mount] = (),
        devices: Sequence[Device] = (),
        environment: Mapping[str, str] | None = None,
        image: str | None = None,
        hostname: str = "freehold",
        backend: Backend | None = None,
        on: str | None = None,
    ) -> PendingComputer:
        """Start a computer. Folders that are not given are temporary and are removed when it is closed.

        `image` is a reference that the backend understands, for bubblewrap a root folder. `on` names a backend, in the
        place of `backend`.
        """

        chosen = backend

        async def open_computer() -> Computer:
            nonlocal chosen
            if chosen is None and on is not None:
                chosen = find_backend(on)
            folder = Path(tempfile.mkdtemp(prefix="freehold-"))
            try:
                spec = ComputerSpec(
                    workspace=_resolve_folder(workspace, folder / "workspace"),
                    home=_resolve_folder(home, folder / "home"),
                    limits=limits or Limits(),
                    mounts=tuple(mounts),
                    devices=tuple(devices),
                    environment=dict(environment or {}),
                    image=image,
                    hostname=hostname,
                )
                machine = await launch(spec, folder / "link", chosen)
                try:
                    connection = ComputerConnection(machine.transport, reconnect=isinstance(machine, RemoteParts))
                    await _connect_or_explain(connection, machine)
                    if isinstance(machine, RemoteParts):
                        machine.when_ended(connection.give_up)
                except BaseException:
                    await machine.stop(0)
                    raise
            except BaseException:
                remove_tree(folder)
                raise
            computer = cls(connection, spec.limits, machine, folder)
            if workspace is None and home is None:
                computer._grace = 0.0  # all of its files are temporary
            return computer

        return PendingComputer(open_computer, lambda: read_waits_for(chosen))

    @classmethod
    def connect(cls, where: str | Path | Transport, *, limits: Limits | None = None) -> PendingComputer:
        """Connect to a running computer by its socket's path or a transport. A lost link is made again until `close`."""

        async def open_computer() -> Computer:
            transport = SocketTransport(Path(where)) if isinstance(where, str | Path) else where
            connection = ComputerConnection(transport)
            await connection.open()
            return cls(connection, limits or Limits())

        return PendingComputer(open_computer)

    @classmethod
    def pool(
        cls,
        size: int,
        *,
        limits: Limits | None = None,
        mounts: Sequence[Mount] = (),
        backend: Backend | None = None,
        on: str | None = None,
    ) -> ComputerPool:
        """Started computers that wait for short jobs: `async with Computer.pool(4) as pool`."""

        chosen = backend

        async def start() -> Computer:
            nonlocal chosen
            if chosen is None and on is not None:
                chosen = find_backend(on)
            return await cls.start(limits=limits, mounts=mounts, backend=chosen)

        return ComputerPool(start, size, lambda: read_waits_for(chosen))

    @classmethod
    def map(
        cls,
        script: str | Path,
        inputs: Iterable[str | Path],
        *,
        into: str | Path,
        parallel: int | None = None,
        timeout: float | None = None,
        retries: int = 2,
        retry_failed: int = 0,
        limits: Limits | None = None,
        mounts: Sequence[Mount] = (),
        backend: Backend | None = None,
        on: str | None = None,
        report: "Report | None" = None,
    ) -> "Batch":
        """Run a script once for each input, each in a computer of its own: `await Computer.map(...)`.

        A path is a file that is sent along, a string is an argument. Results, logs and the journal go to the folder
        `into`. The same call goes on after a crash: nothing that has ended is run again. A task that was lost is begun
        again up to `retries` times, one that failed `retry_failed` times. `report` is called at each end.
        """
        from freehold.computer.batch.script_work import make_script_batch  # few clients have a batch

        def make_pool(size: int) -> ComputerPool:
            return cls.pool(size, limits=limits, mounts=mounts, backend=backend, on=on)

        bounds = (parallel, retries, retry_failed)
        return make_script_batch(Path(script), inputs, Path(into), bounds, make_pool, timeout, report)

    @property
    def transport(self) -> Transport:
        """How to reach it: others connect with `Computer.connect(computer.transport)`."""
        return self._connection.transport

    @property
    def is_connected(self) -> bool:
        """Whether the link works now."""
        return self._connection.live

    @property
    def state(self) -> LinkState:
        return self._connection.state

    @property
    def is_asleep(self) -> bool:
        """Whether it sleeps because nobody uses it. The next request wakes it."""
        return self._connection.use.is_asleep

    @cached_property
    def python(self) -> "CodeLanguage":
        return self._open_language("python")

    @cached_property
    def javascript(self) -> "CodeLanguage":
        return self._open_language("javascript")

    @cached_property
    def typescript(self) -> "CodeLanguage":
        return self._open_language("typescript")

    @cached_property
    def wasm(self) -> "CodeLanguage":
        return self._open_language("wasm")

    def _open_language(self, name: "LanguageName") -> "CodeLanguage":
        from freehold.computer.isolates.language import CodeLanguage  # few clients run code

        return CodeLanguage(self._connection, name)

    def hold_awake(self) -> AbstractContextManager[None]:
        """Keeps it from falling asleep while the context is open, also when nothing is sent to it."""
        return self._connection.use.hold()

    def subscribe(self, callback: Callable[[LinkState, FreeholdError | None], None]) -> Callable[[], None]:
        """Call `callback` at each change of `state`, with the reason. Returns a function that stops it."""
        return self._connection.subscribe(callback)

    async def wait_connected(self) -> None:
        """Wait until the computer can be reached."""
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
        counts_as_use: bool = True,
    ) -> CommandResult:
        """Run a command to its end. A string goes to /bin/sh; a sequence is a program with its arguments.

        At the timeout (`limits.wall_time` if no shorter one is given) the command and everything it started are
        killed, and the result says so. Cancelling the awaiting task kills them too. Processes that a finished command
        left in the background keep running. `apart` is as for `spawn`. The computer stays awake meanwhile; a command
        with `counts_as_use=False` does not begin its time of sleep anew.
        """
        given_limits, limits = limits, limits or self.limits
        time_limit = min(timeout, limits.wall_time) if timeout is not None else float(limits.wall_time)
        data = stdin.encode() if isinstance(stdin, str) else stdin
        request = processes.build_spawn_request(
            command,
            cwd,
            env,
            {"cpu_time": limits.cpu_time} if given_limits is None else describe_command_limits(given_limits),
            timeout=time_limit,
            capture=limits.output,
            quiet=True,
            stdin=True if data is not None else None,
            apart=apart,
        )
        already = self._reached_count
        result = await processes.run_command(
            self._connection.link, request, data, limits.output, time_limit + _TIME_LIMIT_MARGIN, counts=counts_as_use
        )
        if self.machine is not None and not result.ok and result.limit is None:
            await read_usage(self.machine)  # delivers the events that the kernel has counted by now
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
        """Start a command and get its streams. Without a `timeout` it has no time limit.

        `apart` names a group: a session. Commands of one group may inspect and signal each other. Commands of another
        group can do neither; commands without a group can signal all. Without Landlock in the kernel there is no
        separation. `end_sessions` ends all groups.
        """
        request = processes.build_spawn_request(
            command,
            cwd,
            env,
            describe_command_limits(limits),
            timeout=timeout,
            stdin=True,
            merge=merge_stderr or None,
            apart=apart,
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
        """Open a terminal. It lives until its program ends or it is closed, even if the link is lost."""
        request = processes.build_spawn_request(command, cwd, env, None, rows=rows, cols=cols, scrollback=scrollback)
        return await Terminal.open(self._connection.link, {**request, "op": "terminal"})

    async def attach(self, terminal: str, *, since: int | None = None) -> Terminal:
        """View an open terminal: its whole scrollback, or the output after `since` (the `position` of an earlier view)."""
        return await Terminal.open(self._connection.link, {"op": "terminal.attach", "id": terminal, "since": since})

    async def terminals(self) -> list[TerminalInfo]:
        answer = await send_request(self._connection.link, {"op": "terminals"}, counts=False)
        if not isinstance(answer, list):
            raise protocol_error("the list of terminals is not a list")
        return [read_terminal(row) for row in answer]

    async def close_terminal(self, terminal: str) -> None:
        """Kill everything that runs in it."""
        await send_request(self._connection.link, {"op": "terminal.close", "id": terminal})

    async def processes(self) -> list[RunningProcess]:
        """Every process inside except the guest."""
        (outcome,) = await send_batch(self._connection.link, {"op": "processes"}, 1, counts=False)
        outcome.value()
        return [read_running_process(row) for row in outcome.rows]

    async def end_sessions(self) -> EndedSessions:
        """Kill everything that commands with `apart` started, daemons included. What the owner started keeps running.

        Raises `computer.unresponsive` when the computer does not answer within 6 s.
        """
        try:
            async with asyncio.timeout(_END_TIMEOUT):
                return read_ended_sessions(await send_request(self._connection.link, {"op": "sessions.end"}))
        except TimeoutError:
            raise FreeholdError(
                "computer.unresponsive", f"The computer did not answer within {_END_TIMEOUT:g} s", hint="freehold down"
            ) from None

    async def listening_sockets(self) -> list[ListeningSocket]:
        """The TCP sockets inside that listen. The guest reads them itself and runs no program."""
        (outcome,) = await send_batch(self._connection.link, {"op": "listeners"}, 1, counts=False)
        outcome.value()
        return [read_listening_socket(row) for row in outcome.rows]

    async def socket_holders(self, sockets: Collection[int], *, apart: str | None = None) -> dict[int, int]:
        """A process that holds each of these sockets, by inode number as in /proc/net. Sockets without one are left out.

        With `apart` only the processes of that group count. Without Landlock in the kernel all of them do.
        """
        request = {"op": "holders", "sockets": list(sockets), **({} if apart is None else {"apart": apart})}
        (outcome,) = await send_batch(self._connection.link, request, 1, counts=False)
        outcome.value()
        return dict(map(read_socket_owner, outcome.rows))

    async def measure_memory(self, leaders: Collection[int]) -> MemoryUse:
        """What these processes use, each with its descendants, and what everything else inside uses."""
        (outcome,) = await send_batch(
            self._connection.link, {"op": "memory", "leaders": list(leaders)}, 1, counts=False
        )
        outcome.value()
        return read_memory_use(leaders, outcome.rows)

    async def process_tree(self) -> list[ProcessNode]:
        return build_process_tree(await self.processes())

    async def stats(self) -> ComputerStats:
        """Use now, and the limits. Counted by the kernel if this process started the computer, else by the guest."""
        answer = await send_request(self._connection.link, {"op": "stats"}, counts=False)
        if not isinstance(answer, dict):
            raise protocol_error("the reply to stats is not an object")
        known = await read_usage(self.machine) if self.machine is not None else MachineUsage()
        return ComputerStats(
            cpu_seconds=known.cpu_seconds if known.cpu_seconds is not None else read_number(answer, "cpu"),
            memory=known.memory if known.memory is not None else read_int(answer, "memory"),
            processes=known.processes if known.processes is not None else read_int(answer, "processes"),
            disk=known.disk,
            inodes=known.inodes,
            limits=self.limits,
        )

    async def forward(self, port: int | str) -> Tunnel:
        """Connect to a port on the computer's loopback, or to a unix socket inside if `port` is a path."""
        return await Tunnel.connect(self._connection.link, {"op": "forward", **_port_or_path(port)})

    async def listen(self, port: int | str, handler: TunnelHandler) -> ComputerListener:
        """Listen inside on a loopback port (0 chooses one) or a unix socket's path. `handler` serves each connection.

        The port is opened again after each reconnection, until the returned listener or the computer is closed.
        """
        listening = ComputerListener(self._connection, {"op": "listen", **_port_or_path(port)}, handler)
        await listening.open()
        self._listening = [one for one in self._listening if not one.closed] + [listening]
        return listening

    def _count_limit_event(self, event: LimitEvent) -> None:
        if event.kind == "reached":
            self._reached_count += 1
            self._reached = event

    async def close(self) -> None:
        """Close the link. A computer that was started here is stopped and its temporary folders are removed. Idempotent."""
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


def _port_or_path(port: int | str) -> dict[str, int | str]:
    return {"path": port} if isinstance(port, str) else {"port": port}


def _resolve_folder(chosen: str | Path | None, temporary: Path) -> Path:
    if chosen is None:
        temporary.mkdir()
        return temporary
    folder = Path(chosen).expanduser().absolute()
    if not folder.is_dir():
        raise FreeholdError("computer.no-folder", f"{folder} is not a folder", hint=f"mkdir -p {folder}")
    return folder


async def _connect_or_explain(connection: ComputerConnection, machine: Machine) -> None:
    """Connect, or raise an error that says that the machine has ended."""
    opening = asyncio.ensure_future(connection.open())
    ending = asyncio.ensure_future(machine.wait())
    try:
        await asyncio.wait({opening, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():
            raise FreeholdError(
                "computer.ended",
                f"The computer ended right after its start (status {ending.result()})",
                hint="Run freehold doctor to see what is missing",
            )
        await opening
    finally:
        for task in (opening, ending):
            task.cancel()
        await asyncio.gather(opening, ending, return_exceptions=True)
