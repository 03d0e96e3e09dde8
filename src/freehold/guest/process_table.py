"""The processes of this computer, read from /proc: to list them, and to kill a command with everything it started."""

from __future__ import annotations

from freehold.guest.kernel import os, signals
from freehold.guest.spawn import MARKER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
MAX_ROUNDS = 20


class ProcessInfo:
    """One process, as /proc/PID/stat describes it."""

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


def list_processes() -> Iterator[ProcessInfo]:
    """Every process except the guest, zombies included."""
    own = os.getpid()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != own:
            try:
                yield ProcessInfo(int(entry), read_bytes(f"/proc/{entry}/stat"))
            except (OSError, ValueError, IndexError):
                continue  # it has ended meanwhile


def read_bytes(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 65536)
    finally:
        os.close(descriptor)


def read_command_line(pid: int) -> list[str]:
    try:
        return [os.fsdecode(part) for part in read_bytes(f"/proc/{pid}/cmdline")[:4096].split(b"\0")[:-1]]
    except OSError:
        return []


def kill_tree(leader: int, identity: bytes) -> None:
    """Kill a command and everything it started, including daemons in Unix sessions of their own.

    A process belongs to the command if it descends from the leader, is in a session or process group with one that does,
    or has the command's marker in its environment. A process that cleared its environment, was orphaned, and changed
    its session before the first scan is not found. It runs until all sessions are ended (session_end.py) or the
    computer stops.
    """
    own = os.getpid()
    own_session, own_group = os.getsid(0), os.getpgid(0)
    marker = MARKER + b"=" + identity
    known = {leader}
    killed: set[int] = set()
    for _ in range(MAX_ROUNDS):
        everyone = [resident for resident in list_processes() if resident.state not in "ZX"]
        sessions, groups = {leader}, {leader}
        found: dict[int, ProcessInfo] = {}
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
                    or _has_marker(resident.pid, marker)
                ):
                    found[resident.pid] = resident
                    known.add(resident.pid)
                    if resident.session not in (0, own_session):
                        sessions.add(resident.session)
                    if resident.group not in (0, own_group):
                        groups.add(resident.group)
                    grown = True
        found.pop(own, None)
        if killed.issuperset(found):
            return  # no new process: those that are left are dying
        killed.update(found)
        for pid in found:  # stop all first, so that none forks before it is killed
            send_signal(pid, signals.SIGSTOP)
        for pid in found:
            send_signal(pid, signals.SIGKILL)


def _has_marker(pid: int, marker: bytes) -> bool:
    try:
        return marker in read_bytes(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return False


def send_signal(pid: int, number: int) -> None:
    """To one process. What the kernel takes for many (0: our group, -1: everybody) is refused."""
    if pid <= 0:
        raise ValueError(f"{pid} is not one process")
    try:
        os.kill(pid, number)
    except OSError:
        return
