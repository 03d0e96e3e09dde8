"""A service of the manifest: a program inside the computer, which the guest starts."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.keeper.log_writer import LogWriter
from freehold.keeper.output_capture import FLOOD_PAUSE, LineSink, OutputRateLimit
from freehold.keeper.plan import ServicePlan
from freehold.keeper.program import ProgramExit
from freehold.keeper.settings import LogLimits
from freehold.keeper.state_signal import StateSignal
from freehold.keeper.supervised_program import SupervisedProgram

if TYPE_CHECKING:
    from freehold.computer.library.connection import ComputerConnection
    from freehold.computer.library.process import Process
    from freehold.computer.library.stream import ChannelStream


@dataclass(frozen=True)
class ServiceProgram:
    """Waits for the computer before each start. Not required for the seal: an agent may have broken it."""

    plan: ServicePlan
    socket: Path
    computer: SupervisedProgram
    changes: StateSignal
    log_writer: LogWriter
    log_limits: LogLimits = field(default_factory=LogLimits)
    required: bool = False
    starts_on_demand: bool = False

    @property
    def name(self) -> str:
        return f"service-{self.plan.name}"

    async def start(self) -> "ServiceRun":
        from freehold.computer.contract.transport import SocketTransport
        from freehold.computer.library.connection import ComputerConnection
        from freehold.computer.library.process import Process, build_spawn_request

        await self.changes.wait_until(lambda: self.computer.state in ("ready", "stopping", "stopped"))
        if self.computer.state != "ready":
            raise FreeholdError("computer.not-running", "The computer is stopping")
        connection = ComputerConnection(SocketTransport(self.socket), reconnect=False)
        try:
            await connection.open()
            request = build_spawn_request(self.plan.command, self.plan.folder, None, None, stdin=True)
            process = await Process.start(connection.link, request)
        except BaseException:
            await connection.close()
            raise
        return ServiceRun(self, connection, process)


class ServiceRun:
    """When the link is lost, the guest ends the process."""

    def __init__(self, program: ServiceProgram, connection: "ComputerConnection", process: "Process") -> None:
        self._program = program
        self._connection = connection
        self._process = process
        # Its pid inside the computer means nothing on the host.
        self.pid: int | None = None

    async def wait_ended(self) -> ProgramExit:
        rate_limit = OutputRateLimit(self._program.log_limits, asyncio.get_running_loop().time())
        awake = self._connection.use.hold() if self._program.plan.always else contextlib.nullcontext()
        with awake:
            async with asyncio.TaskGroup() as group:
                for name, stream in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
                    group.create_task(self._pump(stream, name, rate_limit))
        try:
            end = await self._process.wait()
        except FreeholdError as error:
            return ProgramExit(f"ended with the computer: {error.message}")
        finally:
            await self._connection.close()
        description = f"exited with {end.code}" if end.code is not None else f"was killed by signal {end.signal}"
        return ProgramExit(description, end.code)

    async def probe(self) -> float:
        if self._process.exit is not None:
            raise FreeholdError("service.ended", "It has ended")
        return 0.0

    async def request_stop(self) -> None:
        with contextlib.suppress(FreeholdError):
            self._process.terminate()

    async def wait_drained(self) -> None:
        with contextlib.suppress(FreeholdError):
            await self._process.wait()

    async def kill(self) -> None:
        with contextlib.suppress(FreeholdError):
            self._process.kill()
        await self._connection.close()

    async def _pump(self, stream: "ChannelStream", name: str, rate_limit: OutputRateLimit) -> None:
        program = self._program
        sink = LineSink(program.name, name, program.log_writer, program.log_limits, rate_limit)
        try:
            with contextlib.suppress(FreeholdError):
                async for data in stream:
                    if not sink.feed(data):
                        await asyncio.sleep(FLOOD_PAUSE)
        finally:
            sink.close()
