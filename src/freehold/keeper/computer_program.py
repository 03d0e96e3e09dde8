"""The computer as a program: a machine behind walls, well when its guest answers on the link."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freehold.errors import FreeholdError
from freehold.keeper.logbook import Logbook
from freehold.keeper.plan import Plan
from freehold.keeper.program import Ending
from freehold.keeper.recorder import Record

if TYPE_CHECKING:
    from freehold.computer.backend import LimitEvent, Machine
    from freehold.computer.link import Link
    from freehold.computer.spec import ComputerSpec

# The guest ends what runs inside within this, or is ended with it.
GRACE = 4.0


AGENTS_INSIDE = "/opt/agents"


def computer_spec(plan: Plan, workspace: Path, home: Path, agents: Path | None = None) -> "ComputerSpec":
    """`agents` is the folder of installed agents: shown read-only and whole, so that a new one is there at once."""
    from freehold.computer.spec import ComputerSpec, Limits, Mount

    shown = () if agents is None else (Mount(agents, AGENTS_INSIDE),)

    return ComputerSpec(
        workspace=workspace,
        home=home,
        limits=Limits(**plan.limits),  # type: ignore[arg-type]  # the manifest has checked which are whole numbers
        mounts=(
            *shown,
            *(Mount(Path(one.source).expanduser(), one.target, one.writable) for one in plan.mounts),
        ),
        image=Path(plan.image).expanduser() if plan.image is not None else None,
    )


@dataclass
class ComputerProgram:
    """`facts` tells of the machine that runs now, for `status`."""

    spec: "ComputerSpec"
    socket: Path
    record: Record
    book: Logbook
    name: str = "computer"
    required: bool = True
    _machine: "Machine | None" = field(default=None, init=False)

    async def start(self) -> "ComputerRun":
        # In a thread: the first import takes a while, and the gateway is being started at the same time.
        launch = await asyncio.to_thread(_import_launch)
        self._machine = machine = await launch(self.spec, self.socket)
        return ComputerRun(machine, self.socket, self._limit_met, self.book)

    def facts(self) -> dict[str, Any]:
        machine = self._machine
        if machine is None:
            return {"isolation": None, "usage": None}
        isolation = machine.isolation
        return {
            "isolation": {
                "backend": isolation.backend,
                "version": isolation.version,
                "uid": isolation.uid,
                "walls": list(isolation.walls),
                "limits": dict(isolation.limits),
            },
            "usage": asdict(machine.usage()),
        }

    def _limit_met(self, event: "LimitEvent") -> None:
        self.record(
            "computer.limit_reached" if event.kind == "reached" else "computer.limit_near",
            {"setting": event.setting, "used": event.used, "allowed": event.allowed, "message": event.message},
        )
        self.book.note("computer", "warning", event.message)


def _import_launch() -> "Callable[[ComputerSpec, Path], Awaitable[Machine]]":
    from freehold.computer.launch import launch

    return launch


class ComputerRun:
    def __init__(
        self, machine: "Machine", socket: Path, limit_met: "Callable[[LimitEvent], None]", book: Logbook
    ) -> None:
        self._machine = machine
        self._socket = socket
        self._book = book
        self._link: Link | None = None
        self._unsubscribe = machine.subscribe(limit_met)

    @property
    def pid(self) -> int | None:
        return self._machine.pid

    async def ended(self) -> Ending:
        code = await self._machine.wait()
        self._unsubscribe()
        if self._link is not None:
            self._link.close()
        # The last words come from inside; the log's reader is told so by the stream's name.
        last_words = getattr(self._machine, "last_words", None)
        for line in last_words().splitlines()[-20:] if last_words else []:
            self._book.write("computer", "inside", line.encode())
        return Ending(f"ended with {code}" if code >= 0 else f"was killed by signal {-code}", code)

    async def probe(self) -> float:
        from freehold.computer.link import Link

        if self._link is None or self._link.ended.done():
            self._link = await Link.connect(self._socket)
        # The link asks by itself every few seconds, and hears whatever comes.
        return self._link.pulse.silence

    async def refuse(self) -> None:
        """Its work comes from the gateway and the services, which refuse for themselves."""

    async def drain(self) -> None:
        await self._machine.stop(GRACE)

    async def kill(self) -> None:
        with contextlib.suppress(FreeholdError):
            await self._machine.stop(0)
        await self.ended()
