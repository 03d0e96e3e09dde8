"""The boot: prepares the home, starts every program and waits until all required ones answer."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from freehold.computer.contract.conventions import AGENTS_PATH, SKILLS_PATH
from freehold.errors import FreeholdError
from freehold.features.declaration import FeatureProgram
from freehold.home import Home
from freehold.keeper.api import KeeperApi
from freehold.keeper.artifacts import check_artifacts
from freehold.keeper.boot_stages import BootStages
from freehold.keeper.computer_program import ComputerProgram, make_computer_spec
from freehold.keeper.computers import TemporaryComputers
from freehold.keeper.host_program import HostProgram, HttpProbe, SocketProbe
from freehold.keeper.lock import lock_home
from freehold.keeper.log_writer import LogWriter, log_to_writer
from freehold.keeper.on_demand_program import OnDemandProgram
from freehold.keeper.orphans import OrphanGuard, kill_orphans
from freehold.keeper.paths import prepare_folders, prepare_root
from freehold.keeper.plan import KeeperPlan
from freehold.keeper.ports import bind_port, check_port
from freehold.keeper.program import Program
from freehold.keeper.retry import retry_until_done
from freehold.keeper.rpc import RpcServer
from freehold.keeper.seal import withdraw_seal
from freehold.keeper.service_program import ServiceProgram
from freehold.keeper.started_process import gateway_command, program_environment
from freehold.keeper.supervised_program import SupervisedProgram
from freehold.observe.tracing import configure_tracing, shutdown_tracing
from freehold.strict_json import encode

if TYPE_CHECKING:
    from freehold.computer.mounts.mount_point import MountPoints
    from freehold.identity.sign_ins import SignIns
    from freehold.keeper.keeper import Keeper

PORT_RELEASE_TIMEOUT = 1.0
"""How long a port of a keeper that has just been killed may stay taken."""
PREPARATION_TIMEOUT = 30.0


class Boot:
    """One boot of a keeper. Everything it opens is closed by `stack`; `tasks` run until then."""

    def __init__(self, keeper: Keeper, plan: KeeperPlan, stages: BootStages, stack: contextlib.AsyncExitStack) -> None:
        self._keeper = keeper
        self._home = keeper.home
        self._plan = plan
        self._stages = stages
        self._stack = stack
        self._log_writer: LogWriter
        self._orphan_guard: OrphanGuard
        self._tasks: asyncio.TaskGroup

    async def run(self) -> KeeperApi:
        """Returns when every required program answers, or one of them has shown that it cannot."""
        keeper = self._keeper
        with self._stages.stage("paths"):
            self._prepare_home()
            page_sockets = await self._start_tasks_and_ports()
        with self._stages.stage("artifacts"):
            await keeper.unless_stopped(asyncio.to_thread(check_artifacts, self._plan, self._home))
            self._start_tracing()
        for exception in self._plan.exceptions:
            keeper.record("security.exception", encode(exception))
        with self._stages.stage("keys"):
            sign_ins = await self._open_keys()
        began = asyncio.get_running_loop().time()
        keeper.api = api = KeeperApi(keeper, self._plan, sign_ins)
        computer, gateway = await self._start_programs(api)
        with self._stages.stage("history", began):
            await keeper.unless_stopped(api.open_history(self._stack, self._tasks))
        await self._stack.enter_async_context(api.serve_page(page_sockets))
        with self._stages.stage("computer", began):
            await keeper.unless_stopped(keeper.wait_settled(computer))
        with self._stages.stage("gateway", began):
            await keeper.unless_stopped(keeper.wait_settled(gateway))
        for program in self._plan.programs:  # last, so that they do not slow down the programs that are required
            keeper.supervisor.start(self._make_feature_program(program))
        with self._stages.stage("seal"):
            sealing = self._tasks.create_task(retry_until_done("the seal", keeper.keep_seal))
            self._stack.callback(sealing.cancel)
            await keeper.unless_stopped(keeper.wait_sealed())
        return api

    def _prepare_home(self) -> None:
        """Lock the home, create its folders, open the log, and end what a killed keeper left behind."""
        home, settings, stack = self._home, self._keeper.settings, self._stack
        prepare_root(home)
        stack.enter_context(lock_home(home, settings.now()))
        prepare_folders(home)
        self._log_writer = stack.enter_context(LogWriter(home.logs, settings.logs, settings.now))
        stack.enter_context(log_to_writer(self._log_writer))
        withdraw_seal(home)
        record_file = home.run / "programs.json"
        killed = kill_orphans(record_file)
        if killed:
            self._keeper.record("keeper.strays_ended", {"pids": killed})
        self._orphan_guard = OrphanGuard(record_file)
        stack.callback(self._orphan_guard.close)

    async def _start_tasks_and_ports(self) -> list[socket.socket]:
        """Start writing the timeline, and take the port of the recovery page."""
        record = self._keeper.record
        self._tasks = await self._stack.enter_async_context(asyncio.TaskGroup())
        writing = self._tasks.create_task(retry_until_done("writing the timeline", record.write_until_cancelled))
        self._stack.callback(writing.cancel)
        page_sockets = await self._keeper.unless_stopped(_claim_ports(self._plan))
        for page_socket in page_sockets:
            self._stack.callback(page_socket.close)
        return page_sockets

    def _start_tracing(self) -> None:
        if self._plan.otlp_endpoint is not None:
            configure_tracing(self._plan.otlp_endpoint, program="freehold-keeper")
            self._stack.push_async_callback(asyncio.to_thread, shutdown_tracing)

    async def _open_keys(self) -> SignIns:
        """Open the sign-ins, and make what the programs of features need before their first start."""
        sign_ins = await self._keeper.unless_stopped(asyncio.to_thread(_open_sign_ins, self._home, self._plan))
        self._stack.callback(sign_ins.close)
        for program in self._plan.programs:
            if not all((self._home.root / file).exists() for file in program.prepared_files):
                await self._keeper.unless_stopped(asyncio.to_thread(_prepare_program, program, self._home))
        return sign_ins

    async def _start_programs(self, api: KeeperApi) -> tuple[SupervisedProgram, SupervisedProgram]:
        """Serve the socket and start the computer, the gateway and the services; returns the first two."""
        home, keeper, stack = self._home, self._keeper, self._stack
        shown = {AGENTS_PATH: home.agents, **({SKILLS_PATH: home.skills} if self._plan.shows_skills else {})}
        computers = TemporaryComputers(
            home,
            self._plan.backend,
            self._plan.engine_host,
            shown,
            keeper.record,
            self._log_writer,
            runs_in_fleet=self._plan.runs_in_fleet,
        )
        computers.register(api.methods)
        await stack.enter_async_context(RpcServer(home.keeper_socket, api.methods).serve())
        stack.callback(withdraw_seal, home)
        stack.callback(home.computer_socket().unlink, missing_ok=True)
        points = self._make_mount_points()  # removed after the programs have ended
        await stack.enter_async_context(keeper.supervisor.run_programs())
        spec = await asyncio.to_thread(
            make_computer_spec, self._plan, home.workspace, home.agent_home, home.mounts, points, shown
        )
        api.computer = ComputerProgram(
            spec,
            home.computer_socket(),
            keeper.record,
            self._log_writer,
            backend=self._plan.backend,
            engine_host=self._plan.engine_host,
            sleep_after=self._plan.sleep_after,
            points=points,
        )
        await stack.enter_async_context(computers.serve(api.computer))
        computer = keeper.supervisor.start(api.computer)
        gateway = keeper.supervisor.start(self._make_gateway())
        for service in self._plan.services:
            keeper.supervisor.start(
                ServiceProgram(
                    service, home.computer_socket(), computer, keeper.changes, self._log_writer, keeper.settings.logs
                )
            )
        return computer, gateway

    def _make_mount_points(self) -> MountPoints | None:
        """None when the computer has no remote mounts. Those that a killed keeper left are then removed."""
        is_needed = any(mount.is_remote for mount in self._plan.mounts)
        if not is_needed and not self._home.mount_points.is_dir():
            return None
        from freehold.computer.mounts.mount_point import MountPoints

        points = MountPoints(self._home.mount_points)
        if not is_needed:
            points.remove()
            return None
        self._stack.callback(points.remove)
        return points

    def _make_gateway(self) -> HostProgram:
        plan = self._plan
        # The probe uses loopback, which is part of every address that the gateway may listen on.
        host = "127.0.0.1" if plan.gateway_host in ("0.0.0.0", "::", "localhost") else plan.gateway_host  # noqa: S104
        return HostProgram(
            name="gateway",
            argv=gateway_command(self._home),
            environment=program_environment(),
            log_writer=self._log_writer,
            orphan_guard=self._orphan_guard,
            probe=HttpProbe(plan.gateway_port, host=host),
            log_limits=self._keeper.settings.logs,
            early=self._keeper.early_gateway,
        )

    def _make_feature_program(self, program: FeatureProgram) -> Program:
        """Freehold is ready without it."""
        process = HostProgram(
            name=program.name,
            argv=[sys.executable, "-m", program.module, "--home", str(self._home.root)],
            environment=program_environment(program.hidden_variables),
            log_writer=self._log_writer,
            orphan_guard=self._orphan_guard,
            probe=SocketProbe(self._home.run / program.probe_socket),
            required=False,
            log_limits=self._keeper.settings.logs,
        )
        return OnDemandProgram(process, program.host, program.port) if program.starts_on_demand else process


async def _claim_ports(plan: KeeperPlan) -> list[socket.socket]:
    """The listening sockets of the recovery page. Also checks that the gateway can have its ports.

    The kernel may release the ports of a killed keeper a moment after its end, so this waits a moment.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PORT_RELEASE_TIMEOUT
    while True:
        try:
            check_port(plan.gateway_host, plan.gateway_port, "gateway.port")
            check_port(plan.metrics_host, plan.metrics_port, "observe.metrics_port")
            return bind_port(plan.keeper_host, plan.keeper_port, "keeper.port")
        except FreeholdError as error:
            if error.code != "keeper.port-taken" or loop.time() > deadline:
                raise
            await asyncio.sleep(0.05)


def _prepare_program(program: FeatureProgram, home: Home) -> None:
    """In another process: the keeper would hold the memory of the imported libraries for as long as it runs."""
    assert program.preparation_module is not None  # it names the files that are missing
    argv = [sys.executable, "-m", program.preparation_module, "--home", str(home.root)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=PREPARATION_TIMEOUT, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise FreeholdError(
            f"{program.name}.not-prepared",
            f"Preparing {program.name} failed: {lines[-1] if lines else 'no reason given'}",
            hint=f"Run it by hand to see more: python -m {program.preparation_module} --home {home.root}",
            kind="unavailable",
        )


def _open_sign_ins(home: Home, plan: KeeperPlan) -> SignIns:
    from freehold.identity.sign_ins import SignIns

    return SignIns(home.identity, owner=plan.owner, idle=plan.sign_in_idle, absolute=plan.sign_in_absolute)
