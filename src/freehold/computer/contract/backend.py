"""The contract between the library and a backend: start, stop, observe. What happens inside is the guest's part.

tests/computer/test_backend_conformance.py runs this contract against every backend.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

from freehold.computer.contract.report import Isolation, LimitEvent, MachineUsage, SleepReport
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.contract.transport import Transport
from freehold.errors import FreeholdError


class Machine(Protocol):
    """A started computer. Everything inside ends with the process that started it, even if that is killed."""

    @property
    def isolation(self) -> Isolation: ...

    @property
    def transport(self) -> Transport:
        """How to reach its guest."""
        ...

    async def wait(self) -> int:
        """Return the exit status once the guest and everything it started are gone. Many may wait, and wait again."""
        ...

    async def stop(self, grace: float = 5.0) -> None:
        """Ask the guest to end, then kill everything after `grace` seconds. Returns when nothing is left. Idempotent."""
        ...

    def usage(self) -> MachineUsage:
        """Read the counters now. Events for limits that were reached are delivered before this returns.

        A caller that saw a process die can therefore ask here which limit killed it. After the end all fields are None.
        """
        ...

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        """Call `callback` for each event, in the event loop that started the machine. Returns a function that stops it."""
        ...

    @property
    def is_asleep(self) -> bool: ...

    async def sleep(self) -> SleepReport:
        """Stop everything inside without ending it: it uses no processor until `wake`, and less memory if possible.

        What is sent to the guest meanwhile is kept for it. Raises `computer.cannot-sleep` if this machine cannot, and
        then nothing has changed. `stop`, `wait` and `usage` work as before. Idempotent.
        """
        ...

    async def wake(self) -> None:
        """Everything inside goes on where it was. May be called while `sleep` has not returned yet. Idempotent."""
        ...

    def last_words(self) -> str:
        """The end of what backend and guest wrote to stderr. Written by code inside: never trust it."""
        ...


class Backend(Protocol):
    """One way to isolate a computer. Its package is listed in `freehold.computer.registry`."""

    @property
    def name(self) -> str: ...

    def make_transport(self, path: Path) -> Transport:
        """A transport of the kind that this backend uses. `path` is the socket on the host where clients will connect."""
        ...

    async def start(self, spec: ComputerSpec, transport: Transport) -> Machine:
        """Start a machine whose guest serves `transport`, which `make_transport` of this backend created.

        The guest is `guest_archive()`, visible inside at GUEST_PATH, and pid 1 of its own pid namespace. It runs with
        the options `--listen FD --hold PORTS`. FD is a listening socket and the only descriptor from outside, PORTS are
        RESERVED_PORTS. On SIGTERM from outside its pid namespace it ends its children and exits.

        Raises `computer.no-isolation` if one wall is missing, `computer.unknown-image` for an image reference that
        cannot be used, and `computer.no-folder`, `computer.mount-missing`, `computer.mount-refused` for bad folders.
        After an error, and after cancellation, nothing of the machine is left.
        """
        ...


@runtime_checkable
class RoomParts(Protocol):
    """An optional part of a backend whose machines may have to wait for room on other hosts."""

    @property
    def waits_for(self) -> str:
        """Why the one that waits longest has no room yet, for the owner. Empty while none waits."""
        ...


def read_waits_for(backend: object) -> str:
    return backend.waits_for if isinstance(backend, RoomParts) else ""


@runtime_checkable
class HostProcess(Protocol):
    """An optional part of a machine: one process of this host that ends when the machine ends.

    None while the machine is written to disk.
    """

    @property
    def pid(self) -> int | None: ...


def find_host_pid(machine: Machine) -> int | None:
    """The pid that stands for the machine on this host, or None if its backend has none."""
    return machine.pid if isinstance(machine, HostProcess) else None


@runtime_checkable
class RemoteParts(Protocol):
    """An optional part of a machine on another host: its counters are a message away, and its folders are copies.

    The folders of its spec are sent to it when it starts. Changes come back at intervals, and when it is stopped with
    a grace above 0.
    """

    @property
    def lost_because(self) -> str:
        """Why it is lost with its host, for the owner. Empty while it runs, and when it has ended by itself."""
        ...

    async def refresh_usage(self) -> None:
        """Read the counters there. Then `usage` has them, and events are delivered."""
        ...

    async def fetch_files(self) -> None:
        """Bring the changes back now."""
        ...

    def when_ended(self, callback: Callable[[FreeholdError], None]) -> None:
        """Call `callback` once, in the loop, when it has ended, with the reason: nobody else at this host sees it end."""
        ...


async def read_usage(machine: Machine) -> MachineUsage:
    """The counters now, wherever the machine is."""
    if isinstance(machine, RemoteParts):
        await machine.refresh_usage()
    return machine.usage()
