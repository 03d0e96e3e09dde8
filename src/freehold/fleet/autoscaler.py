"""Machines that come and go. Ray's autoscaler decides when; the owner's commands start and end them.

Ray has no key of a provider, and what it asks is bounded here: only kinds of the manifest, never more than their `max`,
and no machine ends while computers are on it.
"""

import asyncio
import contextlib
import logging
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, assert_never

from freehold.errors import FreeholdError
from freehold.fleet.fleet_folder import FleetFolder
from freehold.fleet.head import FleetHead
from freehold.fleet.head_commands import drain_node, remove_node
from freehold.fleet.join_code import LIFETIME
from freehold.fleet.join_door import JoinGrant
from freehold.fleet.machine_store import MachineStore, StartedMachine
from freehold.fleet.provider_command import run_provider_command
from freehold.fleet.ray_answers import LaunchMachines, ListMachines, TerminateMachine, read_machine_request
from freehold.fleet.section import AutoscalerSection

LOOK_PAUSE = 0.5
LEAVE_TIMEOUT = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 600.0
"""Seconds until a command that failed is tried again: twice as long each time."""
_log = logging.getLogger("freehold.fleet")


class JoinCodes(Protocol):
    """The codes with which machines join."""

    def make_code(self, grant: JoinGrant | None = None) -> str: ...

    def revoke_codes(self, name: str) -> None: ...


@dataclass
class KindTrouble:
    """Why no machine of a kind was started the last time. Other kinds are not concerned."""

    why: str = ""
    failures: int = 0
    refused_until: float = 0.0


@dataclass
class MachineLife:
    """`leaving`: it is let go. `listed`: Ray has seen it."""

    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    listed: asyncio.Event = field(default_factory=asyncio.Event)


class Autoscaler:
    """`run` it. The owner's commands get `environment`."""

    def __init__(
        self,
        folder: FleetFolder,
        section: AutoscalerSection,
        head: FleetHead,
        codes: JoinCodes,
        environment: Mapping[str, str],
    ) -> None:
        self._folder = folder
        self._section = section
        self._head = head
        self._codes = codes
        self._environment = environment
        self._store = MachineStore(folder.root / "machines.json")
        self._group = asyncio.TaskGroup()
        self._clock = asyncio.get_running_loop().time
        self._lives: dict[str, MachineLife] = {}
        self._troubles = {name: KindTrouble() for name in section.machines}
        self.kinds: Mapping[str, Mapping[str, Any]] = {
            name: kind.model_dump() for name, kind in section.machines.items()
        }
        self.idle: float = section.idle

    @property
    def machines(self) -> Mapping[str, StartedMachine]:
        return self._store.machines

    @property
    def trouble(self) -> str:
        """Why no machine can be started now."""
        found = [self._store.trouble, *(one.why for one in self._troubles.values())]
        return "; ".join(dict.fromkeys(filter(None, found)))

    async def run(self) -> None:
        """Until cancelled. Machines go on: the next head finds them."""
        async with self._group:
            for machine in list(self.machines.values()):
                self._find_again(machine)
            while True:
                await asyncio.sleep(LOOK_PAUSE)
                self._look()

    def answer(self, request: object) -> dict[str, Any]:
        """To Ray's autoscaler. An `error` makes it try again later."""
        try:
            match read_machine_request(request):
                case ListMachines():
                    return self._list()
                case LaunchMachines() as launch:
                    return self._launch(launch)
                case TerminateMachine() as terminate:
                    return self._terminate(terminate.name)
                case other:
                    assert_never(other)
        except FreeholdError as error:
            return {"error": error.message}

    def _list(self) -> dict[str, Any]:
        for life in self._lives.values():
            life.listed.set()
        return {"machines": [_describe_to_ray(machine) for machine in self.machines.values()]}

    def _launch(self, request: LaunchMachines) -> dict[str, Any]:
        kind = request.kind
        if kind not in self._section.machines or request.count < 1:
            raise FreeholdError("fleet.bad-message", f"There is no kind of machine {kind[:60]!r}")
        trouble = self._troubles[kind]
        if self._clock() < trouble.refused_until:
            raise FreeholdError("fleet.failed", trouble.why or f"A machine of the kind {kind} has just failed to start")
        running = self._count(kind)
        most = self._section.machines[kind].max - running
        if request.count > most:
            raise FreeholdError(
                "fleet.too-many", f"{running} machines of the kind {kind} are there, and {most} may come"
            )
        found = [
            StartedMachine(_name_machine(kind), kind, request.request[:100], "starting") for _ in range(request.count)
        ]
        for machine in found:
            self._store.put(machine)
        if self._store.trouble:  # nothing is started that the next head would not know
            why = self._store.trouble
            for machine in found:
                self._store.remove(machine.name)
            self._note_failure(kind, why)
            raise FreeholdError("fleet.failed", why)
        for machine in found:
            self._begin(machine)
        return {}

    def _terminate(self, name: str) -> dict[str, Any]:
        """One that Ray has found idle. It gets no more computers, and those that it has end first."""
        machine = self.machines.get(name)
        if machine is None or machine.state == "stopping":
            return {}
        self._drain_now(name)  # before the computers are counted: none comes after that
        busy = len(self._head.list_computers(name))
        if busy:
            self._group.create_task(self._drain(name))
            raise FreeholdError("fleet.still-running", f"{busy} computers are on {name}")
        self._let_go(name)
        return {}

    # One task is one machine, from its start command to the end of its stop command: they never run side by side.

    def _find_again(self, machine: StartedMachine) -> None:
        """One of an earlier head. The code of one that had not joined is gone."""
        is_known = machine.name in self._head.known
        if machine.state == "starting" and is_known:
            machine = replace(machine, state="joined")
            self._store.put(machine)
        elif not is_known:
            machine = replace(machine, state="stopping")
            self._store.put(machine)
        self._begin(machine)
        if machine.state == "stopping":
            self._let_go(machine.name)

    def _begin(self, machine: StartedMachine) -> None:
        self._lives[machine.name] = MachineLife()
        self._group.create_task(self._live(machine))

    async def _live(self, machine: StartedMachine) -> None:
        life = self._lives[machine.name]
        if machine.state == "starting":
            await self._start(machine, life)
        await life.leaving.wait()
        await self._stop(machine, life)
        del self._lives[machine.name]

    async def _start(self, machine: StartedMachine, life: MachineLife) -> None:
        """Until it has joined or is let go. Its command is not interrupted: what it makes may cost money."""
        labels = dict(self._section.machines[machine.kind].labels)
        try:
            code = self._codes.make_code(JoinGrant(machine.name, machine.kind, labels))
            variables = {**_describe(machine), "FREEHOLD_JOIN_CODE": code}
            async with asyncio.timeout(LIFETIME):
                await run_provider_command(self._section.start, variables, self._environment)
                while machine.name not in self._head.known and not life.leaving.is_set():  # noqa: ASYNC110 - another joins
                    await asyncio.sleep(LOOK_PAUSE)
        except FreeholdError as error:
            self._fail(machine, error.message)
        except TimeoutError:
            self._fail(machine, f"The machine {machine.name} did not join within {LIFETIME / 60:g} minutes")
        except OSError as error:
            self._fail(machine, f"The machine {machine.name} cannot be started: {error.strerror}")
        else:
            if not life.leaving.is_set():
                self._troubles[machine.kind] = KindTrouble()
                self._store.put(replace(machine, state="joined"))

    def _fail(self, machine: StartedMachine, why: str) -> None:
        """What there may be of it is ended, and no other of its kind is started for a while."""
        _log.warning("A machine is not started: %s", why)
        self._note_failure(machine.kind, why)
        self._let_go(machine.name)

    def _note_failure(self, kind: str, why: str) -> None:
        trouble = self._troubles[kind]
        trouble.why = why
        trouble.refused_until = self._clock() + min(LONGEST_PAUSE, FIRST_PAUSE * 2**trouble.failures)
        trouble.failures = min(trouble.failures + 1, 10)

    def _let_go(self, name: str) -> None:
        """Idempotent."""
        life = self._lives[name]
        if life.leaving.is_set():
            return
        life.leaving.set()
        self._codes.revoke_codes(name)
        self._drain_now(name)
        self._store.put(replace(self.machines[name], state="stopping"))

    async def _stop(self, machine: StartedMachine, life: MachineLife) -> None:
        """Until the owner's command says that it has ended."""
        name = machine.name
        await self._drain(name)
        while self._head.list_computers(name):  # noqa: ASYNC110 - their clients end them
            await asyncio.sleep(LOOK_PAUSE)
        link = self._head.find_link(name)
        if link is not None:
            with contextlib.suppress(FreeholdError, TimeoutError):
                async with asyncio.timeout(LEAVE_TIMEOUT):
                    await link.ask("leave")
        pause = FIRST_PAUSE
        while why := await self._try_end(machine):
            _log.warning("A machine is not ended: %s", why)
            self._store.put(replace(self.machines[name], trouble=why))
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)
        await life.listed.wait()  # one that Ray has never seen it would expect for minutes
        self._store.remove(name)
        _log.info("The machine %s is let go", name)

    async def _try_end(self, machine: StartedMachine) -> str:
        """Why it has not ended; empty if it has."""
        try:
            await run_provider_command(self._section.stop, _describe(machine), self._environment)
            await remove_node(self._head, self._folder, machine.name)
        except FreeholdError as error:
            return error.message
        except OSError as error:
            return f"{machine.name} cannot be removed: {error.strerror}"
        return ""

    def _drain_now(self, name: str) -> None:
        if name in self._head.known:
            self._head.set_draining(name, True)

    async def _drain(self, name: str) -> None:
        """Also for the next head, unless the disk is full."""
        try:
            await drain_node(self._head, self._folder, name, is_draining=True)
        except OSError as error:
            _log.warning("That %s is draining is not written: %s", name, error)

    def _look(self) -> None:
        """One that the owner has removed from the fleet is ended too. A trouble ends when nobody waits any more."""
        if self._store.trouble:
            self._store.write()
        for machine in list(self.machines.values()):
            if machine.state == "joined" and machine.name not in self._head.known:
                self._let_go(machine.name)
        for kind, trouble in self._troubles.items():
            if not self._head.queue and self._count(kind) >= self._section.machines[kind].min:
                trouble.why = ""

    def _count(self, kind: str) -> int:
        return sum(machine.kind == kind for machine in self.machines.values())


def _name_machine(kind: str) -> str:
    return f"{re.sub(r'[^a-z0-9-]', '-', kind)[:24]}-{secrets.token_hex(3)}"


def _describe_to_ray(machine: StartedMachine) -> dict[str, str]:
    return {"name": machine.name, "kind": machine.kind, "request": machine.request}


def _describe(machine: StartedMachine) -> dict[str, str]:
    return {"FREEHOLD_NODE": machine.name, "FREEHOLD_MACHINE": machine.kind}
