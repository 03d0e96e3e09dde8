"""Facts about processes, from /proc. Pids are reused, so a process is identified by its pid and its start time."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class ProcessId:
    """One process. Unique until the machine boots again."""

    pid: int
    started: int


def identify_process(pid: int) -> ProcessId | None:
    """The running process with this pid; None when there is none. A zombie does not count."""
    fields = _stat(pid)
    if fields is None or fields[0] in ("Z", "X"):
        return None
    return ProcessId(pid, int(fields[19]))


def is_alive(process: ProcessId) -> bool:
    return identify_process(process.pid) == process


def list_group_members(group: int) -> list[int]:
    """The running processes of a process group."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - bare names, a thousand of them
        if name.isdigit():
            fields = _stat(int(name))
            if fields is not None and int(fields[2]) == group and fields[0] not in ("Z", "X"):
                found.append(int(name))
    return found


def kill_group(group: int, number: signal.Signals) -> bool:
    """Signal every process of the group; False when none is left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # only processes that changed their user are left
        return False
    return True


def read_resident_bytes(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return None


def read_command(pid: int) -> str:
    """The command line of a process, for people; empty when this user may not see it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode(errors="replace").strip() or Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def read_boot_id() -> str:
    """An id that changes with every boot of the machine. Start times are comparable only within one boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _stat(pid: int) -> list[str] | None:
    """The fields after the name: state is 0, parent 1, group 2, start time 19."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()
