"""The process that never dies: boots a Freehold, keeps it, and takes it down in good order."""

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.artifacts import check_artifacts
from freehold.keeper.changes import Changes
from freehold.keeper.computer_program import ComputerProgram, computer_spec
from freehold.keeper.desk import Desk
from freehold.keeper.host_program import HostProgram, HttpProbe, SocketProbe
from freehold.keeper.kept import KeptProgram
from freehold.keeper.lock import hold_home
from freehold.keeper.logbook import Logbook, LogbookHandler
from freehold.keeper.paths import prepare_folders, prepare_root
from freehold.keeper.plan import Plan
from freehold.keeper.ports import bind_port, check_port
from freehold.keeper.processes import identify
from freehold.keeper.reading import Reading
from freehold.keeper.recorder import Recorder
from freehold.keeper.rpc import RpcServer
from freehold.keeper.seal import Seal, withdraw_seal, write_seal
from freehold.keeper.service_program import ServiceProgram
from freehold.keeper.settings import KeeperSettings
from freehold.keeper.stages import Announce, Stages
from freehold.keeper.strays import Strays, end_strays
from freehold.keeper.supervisor import Supervisor
from freehold.keeper.tending import tended
from freehold.observe.tracing import configure_tracing, shutdown_tracing
from freehold.places import find_system_folder
from freehold.ssh.keys import keys_exist

log = logging.getLogger(__name__)
T = TypeVar("T")
PORT_PATIENCE = 1.0


class Stopped(Exception):
    pass


class Keeper:
    """Make one, `run` it once. `announce` is told what happens; a `reading` that was begun earlier saves time."""

    def __init__(
        self,
        home: Home,
        settings: KeeperSettings | None = None,
        announce: Announce | None = None,
        reading: Reading | None = None,
    ) -> None:
        self.home = home
        self.settings = settings or KeeperSettings()
        self.boot_id = secrets.token_hex(8)
        self.changes = Changes()
        self.record = Recorder(home.timeline, self.settings.now)
        self.supervisor = Supervisor(self.settings, self.record, self.changes)
        self.sealed_since: str | None = None
        self._listener = announce
        self._reading = reading or Reading(home)
        self._stop = asyncio.Event()
        self._desk: Desk | None = None

    async def run(self) -> None:
        """Returns after a stop that was asked for; raises FreeholdError when the boot cannot go on."""
        with self._signals():
            stages = Stages(self.record, self._announce)
            try:
                async with contextlib.AsyncExitStack() as stack:
                    try:
                        await self._boot(stack, stages)
                        await self._stop.wait()
                    except Stopped:
                        self.record("boot.stopped", {"stage": stages.current})
                    await self._take_down()
            except (FreeholdError, BaseExceptionGroup) as raised:
                error = _for_the_owner(raised)
                if error is None:
                    raise
                self.record("boot.failed", {"stage": stages.current, "code": error.code, "message": error.message})
                raise error from None
            finally:
                if self.home.root.is_dir() and find_system_folder(self.home.root) is None:
                    await asyncio.to_thread(self.record.write_now)
                self.record.close()
        self._announce("stopped", {})

    def _announce(self, event: str, data: dict[str, Any]) -> None:
        try:
            if self._listener is not None:
                self._listener(event, data)
        except OSError:  # whoever listened has closed the terminal or the pipe
            self._listener = None

    def request_stop(self) -> None:
        """Once: in good order. Twice: now."""
        if self._stop.is_set():
            self.supervisor.hurry()
        self._stop.set()
        self.changes.tell()

    async def _boot(self, stack: contextlib.AsyncExitStack, stages: Stages) -> None:
        home, settings = self.home, self.settings
        self.record("boot.started", {"boot": self.boot_id, "pid": os.getpid()})
        with stages.stage("manifest"):
            stack.callback(self._reading.close)
            plan = await self._unless_stopped(self._reading.plan())
        with stages.stage("paths"):
            prepare_root(home)
            stack.enter_context(hold_home(home, settings.now()))
            prepare_folders(home)
            book = stack.enter_context(Logbook(home.logs, settings.logs, settings.now))
            stack.enter_context(_own_log(book))
            withdraw_seal(home)
            record_file = home.run / "programs.json"
            ended = end_strays(record_file)
            if ended:
                self.record("keeper.strays_ended", {"pids": ended})
            strays = Strays(record_file)
            stack.callback(strays.close)
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            writing = tasks.create_task(tended("the timeline's pen", self.record.write))
            stack.callback(writing.cancel)
            page_sockets = await self._unless_stopped(_claim_ports(plan))
            for page_socket in page_sockets:
                stack.callback(page_socket.close)
        with stages.stage("artifacts"):
            await self._unless_stopped(asyncio.to_thread(check_artifacts, plan))
            if plan.otlp_endpoint is not None:
                configure_tracing(plan.otlp_endpoint, program="freehold-keeper")
                stack.push_async_callback(asyncio.to_thread, shutdown_tracing)
        with stages.stage("keys"):
            sessions = await self._unless_stopped(asyncio.to_thread(_open_sessions, home, plan))
            stack.callback(sessions.close)
            if plan.ssh_port is not None and not keys_exist(home):
                await self._unless_stopped(asyncio.to_thread(_make_ssh_keys, home))
        began = asyncio.get_running_loop().time()
        self._desk = desk = Desk(self, plan, book, sessions)
        await stack.enter_async_context(RpcServer(home.keeper_socket, desk.methods).serve())
        stack.callback(withdraw_seal, home)
        stack.callback(home.computer_socket.unlink, missing_ok=True)
        await stack.enter_async_context(self.supervisor.running())
        computer_program = ComputerProgram(
            computer_spec(plan, home.workspace, home.agent_home, home.agents), home.computer_socket, self.record, book
        )
        desk.computer = computer_program
        computer = self.supervisor.start(computer_program)
        gateway = self.supervisor.start(self._gateway(plan, book, strays))
        for service in plan.services:
            self.supervisor.start(
                ServiceProgram(service, home.computer_socket, computer, self.changes, book, settings.logs)
            )
        with stages.stage("history", began):
            await self._unless_stopped(desk.open_history(stack, tasks))
        await stack.enter_async_context(desk.serve_page(page_sockets))
        with stages.stage("computer", began):
            await self._unless_stopped(self._settled(computer))
        with stages.stage("gateway", began):
            await self._unless_stopped(self._settled(gateway))
        if plan.ssh_port is not None:  # only now: it would take a core from those that readiness waits for
            self.supervisor.start(self._ssh(book, strays))
        with stages.stage("seal"):
            sealing = tasks.create_task(tended("the seal", self._keep_seal))
            stack.callback(sealing.cancel)
            await self._unless_stopped(self._sealed())
        took = round(asyncio.get_running_loop().time() - stages.began, 4)
        self.record("boot.finished", {"boot": self.boot_id, "seconds": took, "sealed": self.sealed_since is not None})
        self._announce("ready" if self.sealed_since else "not-ready", await desk.greeting() | {"seconds": took})

    def _gateway(self, plan: Plan, book: Logbook, strays: Strays) -> HostProgram:
        # Asked on the loopback address that every address it may listen on includes.
        host = "127.0.0.1" if plan.gateway_host in ("0.0.0.0", "::", "localhost") else plan.gateway_host  # noqa: S104
        return HostProgram(
            name="gateway",
            argv=[sys.executable, "-m", "freehold.gateway", "--home", str(self.home.root)],
            environment=os.environ,
            book=book,
            strays=strays,
            probe=HttpProbe(plan.gateway_port, host=host),
            logs=self.settings.logs,
        )

    def _ssh(self, book: Logbook, strays: Strays) -> HostProgram:
        """Apart from the gateway, so that bulk transfers do not slow its answers; nothing else waits for it."""
        return HostProgram(
            name="ssh",
            argv=[sys.executable, "-m", "freehold.ssh", "--home", str(self.home.root)],
            environment=os.environ,
            book=book,
            strays=strays,
            probe=SocketProbe(self.home.run / "ssh.sock"),
            required=False,
            logs=self.settings.logs,
        )

    async def _settled(self, kept: KeptProgram) -> None:
        """It answers, or has shown that it will not for now: a broken program does not end the boot."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.settings.ready_deadline):
                await self.changes.until(lambda: kept.state in ("ready", "crash-looping"))

    async def _sealed(self) -> None:
        def hopeless() -> bool:
            return any(k.state == "crash-looping" for k in self.supervisor.programs() if k.program.required)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.settings.ready_deadline):
                await self.changes.until(lambda: self.sealed_since is not None or hopeless())

    async def _keep_seal(self) -> None:
        """Writes the seal whenever all required programs are ready, and takes it away as soon as one is not."""
        me = identify(os.getpid())
        while True:
            missing = self.supervisor.missing()
            if not missing and self.sealed_since is None and not self.supervisor.stopping:
                since = datetime.fromtimestamp(self.settings.now(), UTC).isoformat(timespec="milliseconds")
                names = ("history", *(k.name for k in self.supervisor.programs() if k.program.required))
                try:
                    write_seal(self.home, Seal(self.boot_id, since, names, os.getpid(), me.started if me else 0))
                except OSError as error:
                    log.warning("the seal cannot be written: %s", error)
                    await asyncio.sleep(1)
                    continue
                self.sealed_since = since
                self.record("seal.written", {"boot": self.boot_id, "requirements": list(names)})
                self._announce("sealed", {})
                self.changes.tell()
            elif missing and self.sealed_since is not None:
                self._unseal(missing)
                self._announce("lost", {"missing": missing})
            await self.changes.next()

    def _unseal(self, missing: list[str]) -> None:
        withdraw_seal(self.home)
        self.sealed_since = None
        self.record("seal.withdrawn", {"boot": self.boot_id, "missing": missing})

    async def _take_down(self) -> None:
        self._announce("stopping", {})
        self.record("keeper.stopping", {"boot": self.boot_id})
        if self.sealed_since is not None:
            self._unseal(["the keeper is stopping"])
        for report in await self.supervisor.stop(self._final_writes):
            if report.stragglers:
                self._announce("straggling", {"stage": report.stage, "stragglers": list(report.stragglers)})
        self.record("keeper.stopped", {"boot": self.boot_id})

    async def _final_writes(self) -> None:
        if self._desk is not None and self._desk.archive is not None:
            await self._desk.archive.take_last()
        await self.record.flushed()

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """The work's result, or `Stopped` as soon as a stop is asked for."""
        async with asyncio.TaskGroup() as group:
            doing = group.create_task(_caught(work))
            stopping = group.create_task(self._stop.wait())
            await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not doing.done():
                doing.cancel()
        if doing.cancelled() or self._stop.is_set():
            raise Stopped
        result, error = doing.result()
        if error is not None:
            raise error
        return result  # type: ignore[return-value]  # a result is there when no error is

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


async def _caught(work: Coroutine[Any, Any, T]) -> tuple[T | None, FreeholdError | None]:
    """Errors for the owner are carried as values, so that no task group wraps them."""
    try:
        return await work, None
    except FreeholdError as error:
        return None, error


async def _claim_ports(plan: Plan) -> list[socket.socket]:
    """Our own port, and the certainty that the gateway will get its own.

    Those of a keeper that was killed a moment ago are let go by the kernel a moment later: that long we wait.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PORT_PATIENCE
    while True:
        try:
            check_port(plan.gateway_host, plan.gateway_port, "gateway.port")
            check_port(plan.metrics_host, plan.metrics_port, "observe.metrics_port")
            return bind_port(plan.keeper_host, plan.keeper_port, "keeper.port")
        except FreeholdError as error:
            if error.code != "keeper.port-taken" or loop.time() > deadline:
                raise
            await asyncio.sleep(0.05)


def _make_ssh_keys(home: Home) -> None:
    """In a process of its own: the keeper would carry the cryptography for ever."""
    argv = [sys.executable, "-m", "freehold.ssh.keys", "--home", str(home.root)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise FreeholdError("ssh.key", f"The keys for SSH cannot be made: {said[-1] if said else 'no reason given'}")


def _open_sessions(home: Home, plan: Plan) -> Any:
    from freehold.identity.sessions import Sessions

    return Sessions(home.identity, owner=plan.owner, idle=plan.session_idle, absolute=plan.session_absolute)


@contextlib.contextmanager
def _own_log(book: Logbook) -> Iterator[None]:
    handler = LogbookHandler(book)
    root = logging.getLogger()
    root.addHandler(handler)
    before = root.level
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def _for_the_owner(raised: BaseException) -> FreeholdError | None:
    """The explained error in what came out of the task groups; None when there is a bug in it."""
    if isinstance(raised, FreeholdError):
        return raised
    if isinstance(raised, BaseExceptionGroup):
        found = [_for_the_owner(each) for each in raised.exceptions]
        return found[0] if all(found) else None
    return None
