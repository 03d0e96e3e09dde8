"""Who lives in this computer, read from /proc: for the list of processes, and to end a command with all it started."""

from __future__ import annotations

import os

from freehold.guest.kernel import signals
from freehold.guest.spawn import MARKER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
ROUNDS = 20


class Resident:
    """One line of the census."""

    __slots__ = ("cpu", "group", "memory", "name", "parent", "pid", "session", "started", "state", "threads")

    def __init__(self, pid: int, stat: bytes) -> None:
        opening, closing = stat.index(b"("), stat.rindex(b")")
        fields = stat[closing + 2 :].split()
        self.pid = pid
        self.name = os.fsdecode(stat[opening + 1 : closing])
        self.state = fields[0].decode()
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.cpu = (int(fields[11]) + int(fields[12])) / TICK
        self.threads = int(fields[17])
        self.started = int(fields[19]) / TICK
        self.memory = int(fields[21]) * PAGE


def residents() -> Iterator[Resident]:
    """Every process but this one, zombies included."""
    own = os.getpid()
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib is too slow to import here
        if entry.isdigit() and int(entry) != own:
            try:
                yield Resident(int(entry), read_bytes(f"/proc/{entry}/stat"))
            except (OSError, ValueError, IndexError):
                continue  # it went while we looked


def read_bytes(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 65536)
    finally:
        os.close(descriptor)


def command_line(pid: int) -> list[str]:
    try:
        return [os.fsdecode(part) for part in read_bytes(f"/proc/{pid}/cmdline")[:4096].split(b"\0")[:-1]]
    except OSError:
        return []


def end_all_of(leader: int, identity: bytes) -> None:
    """Kill a command's process group and everything that came from it, daemons in sessions of their own included.

    A process belongs if it descends from the leader, shares a session or group with one that does, or carries the
    command's marker. One that wiped its environment *and* was orphaned *and* changed session before we looked escapes
    here and lives until the computer is stopped.
    """
    own = os.getpid()
    own_session, own_group = os.getsid(0), os.getpgid(0)
    marker = MARKER + b"=" + identity
    known = {leader}
    struck: set[int] = set()
    for _ in range(ROUNDS):
        everyone = [resident for resident in residents() if resident.state not in "ZX"]
        sessions, groups = {leader}, {leader}
        found: dict[int, Resident] = {}
        grown = True
        while grown:
            grown = False
            for resident in everyone:
                if resident.pid in found:
                    continue
                if (
                    resident.pid in known
                    or resident.parent in known
                    or (resident.session in sessions)
                    or (resident.group in groups)
                    or _carries(resident.pid, marker)
                ):
                    found[resident.pid] = resident
                    known.add(resident.pid)
                    if resident.session not in (0, own_session):
                        sessions.add(resident.session)
                    if resident.group not in (0, own_group):
                        groups.add(resident.group)
                    grown = True
        found.pop(own, None)
        if struck.issuperset(found):
            return  # nobody new: those that are left are on their way out
        struck.update(found)
        for pid in found:  # first make them hold still, so that nothing is forked between the look and the blow
            send(pid, signals.SIGSTOP)
        for pid in found:
            send(pid, signals.SIGKILL)


def _carries(pid: int, marker: bytes) -> bool:
    try:
        return marker in read_bytes(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return False


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return
