"""What the keeper answers: the methods of its socket, and the facts behind the recovery page."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Literal

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.keeper import calls
from freehold.keeper.disk_space import measure_disks
from freehold.keeper.history_host import HistoryHost
from freehold.keeper.methods import RpcMethods
from freehold.keeper.plan_reader import PlanReader
from freehold.keeper.processes import read_resident_bytes
from freehold.keeper.retry import retry_until_done
from freehold.strict_json import encode

if TYPE_CHECKING:
    from freehold.computer.mounts.remote_state import RemoteMountState
    from freehold.identity.sign_ins import SignIns
    from freehold.keeper.computer_program import ComputerProgram
    from freehold.keeper.keeper import Keeper
    from freehold.keeper.plan import KeeperPlan, MountPlan

EVENTS_IN_STATUS = 12


class KeeperApi:
    """`computer` and `history` are None until the boot has created them."""

    def __init__(self, keeper: Keeper, plan: KeeperPlan, sign_ins: SignIns) -> None:
        self.keeper = keeper
        self.plan = plan
        self.sign_ins = sign_ins
        self.computer: ComputerProgram | None = None
        self.history: HistoryHost | None = None
        self.began = keeper.settings.now()
        self.methods = RpcMethods()
        self.methods.add_call(calls.GetKeeperStatus, self._status)
        self.methods.add_call(calls.RestartProgram, self._restart)
        self.methods.add_call(calls.StopKeeper, self._stop)

    async def status(self) -> calls.KeeperStatus:
        """Everything that `freehold status` shows."""
        keeper, plan = self.keeper, self.plan
        events = await asyncio.to_thread(keeper.record.tail, EVENTS_IN_STATUS)
        disk = await asyncio.to_thread(measure_disks, (keeper.home.root, keeper.home.workspace))
        computer = self._computer_status()
        return calls.KeeperStatus(
            version=__version__,
            home=str(keeper.home.root),
            boot=keeper.boot_id,
            ready=keeper.sealed_since is not None,
            since=keeper.sealed_since,
            missing=tuple(keeper.supervisor.missing_requirements()),
            keeper=calls.KeeperProcess(os.getpid(), self.began, read_resident_bytes(os.getpid())),
            programs=tuple(supervised.status() for supervised in keeper.supervisor.programs()),
            ports=tuple(self._ports()),
            url=plan.gateway_url,
            keeper_url=plan.keeper_url,
            manifest=calls.ManifestFile(str(keeper.home.manifest), plan.checksum),
            advice=plan.advice,
            isolation=computer.isolation,
            usage=computer.usage,
            sleep=computer.sleep,
            disk=disk,
            timeline_trouble=keeper.record.trouble,
            mounts=await self._mounts(),
            exceptions=plan.exceptions,
            events=tuple(calls.RecordedEvent(**vars(event) | {"data": dict(event.data)}) for event in events),
        )

    async def describe_start(self) -> dict[str, Any]:
        """What `freehold up` prints, with a new sign-in link when there is no owner DID."""
        link = await asyncio.to_thread(self.sign_ins.create_link) if self.plan.owner is None else None
        return {
            "url": self.plan.gateway_url,
            "keeper_url": self.plan.keeper_url,
            "sign_in": f"{self.plan.gateway_url}/sign-in#{link}" if link is not None else None,
            "owner": self.plan.owner,
            "isolation": encode(self._computer_status().isolation),
            "home": str(self.keeper.home.root),
            "missing": self.keeper.supervisor.missing_requirements(),
            "advice": encode(self.plan.advice),
        }

    async def restart(self, program: str, *, wait: bool = True, who: str = "owner") -> calls.ProgramStatus:
        """Stop a program in order and start it again. With `wait`, returns when it has left the state `starting`."""
        supervised = self.keeper.supervisor.find(program)
        if program == "gateway":
            await self._refuse_broken_manifest()
        self.keeper.record("program.restart_asked", {"program": program}, who=who)
        await supervised.restart()
        if wait:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.keeper.settings.start_deadline):
                    await self.keeper.changes.wait_until(lambda: supervised.state != "starting")
        return supervised.status()

    async def _refuse_broken_manifest(self) -> None:
        """A gateway reads the manifest when it starts. Do not stop one that runs when the next could not start."""
        try:
            await PlanReader(self.keeper.home).read_plan()
        except FreeholdError as error:
            if error.code == "manifest.invalid":
                raise

    @contextlib.asynccontextmanager
    async def serve_page(self, sockets: list[socket.socket]) -> AsyncIterator[None]:
        from freehold.keeper.page.server import serve_page

        async with serve_page(self, sockets):
            yield

    async def open_history(self, stack: contextlib.AsyncExitStack, tasks: asyncio.TaskGroup) -> None:
        """History is open and watches the folders when this returns. The first snapshot goes on in the background."""

        def after_undo() -> None:
            tasks.create_task(retry_until_done("restarting services after an undo", self._restart_after_undo))

        self.history = history = HistoryHost(self.keeper.home, self.plan, self.keeper.record, after_undo)
        stack.push_async_callback(history.close)
        await history.open()
        history.register(self.methods)
        first = tasks.create_task(retry_until_done("the first snapshot", history.record_at_start))
        stack.callback(first.cancel)

    async def _restart_after_undo(self) -> None:
        """Restart the services that have `restart_on_undo`: their files have changed."""
        for service in self.plan.services:
            if service.restart_on_undo:
                with contextlib.suppress(FreeholdError):
                    await self.restart(f"service-{service.name}", wait=False, who="keeper")

    async def _status(self, _: calls.GetKeeperStatus) -> calls.KeeperStatus:
        return await self.status()

    async def _restart(self, call: calls.RestartProgram) -> calls.ProgramStatus:
        return await self.restart(call.program, who=call.who)

    async def _stop(self, _: calls.StopKeeper) -> calls.StopStarted:
        self.keeper.request_stop()
        return calls.StopStarted(stopping=True, pid=os.getpid())

    def _computer_status(self) -> calls.ComputerStatus:
        return self.computer.status() if self.computer is not None else calls.ComputerStatus(None, None, None)

    async def _mounts(self) -> tuple[calls.MountStatus, ...]:
        states: dict[str, RemoteMountState] = {}
        if any(mount.is_remote for mount in self.plan.mounts):
            from freehold.computer.mounts.remote_status import read_states

            states = await read_states(self.keeper.home.run / "mounts.sock")
        return tuple(self._describe_mount(mount, states) for mount in self.plan.mounts)

    def _describe_mount(self, mount: MountPlan, states: dict[str, RemoteMountState]) -> calls.MountStatus:
        """A mount that is not remote is part of the computer from its start."""
        state: Literal["starting", "ready", "failing", "down"] = "ready"
        words = ""
        if mount.is_remote and (found := states.get(mount.target)) is not None:
            state, words = found.state, found.words
        elif mount.is_remote:
            programs = [one for one in self.keeper.supervisor.programs() if one.name == "mounts" and one.starts]
            is_starting = all(one.state == "starting" for one in programs)
            state, words = ("starting", "") if is_starting else ("down", "The program mounts does not answer")
        return calls.MountStatus(mount.kind, mount.source, mount.target, mount.writable, state, words)

    def _ports(self) -> list[calls.ListeningPort]:
        plan = self.plan
        ports = [
            calls.ListeningPort("gateway", plan.gateway_host, plan.gateway_port),
            calls.ListeningPort("keeper", plan.keeper_host, plan.keeper_port),
            calls.ListeningPort("metrics", plan.metrics_host, plan.metrics_port),
        ]
        return [*ports, *(calls.ListeningPort(one.name, one.host, one.port) for one in plan.programs if one.port)]
