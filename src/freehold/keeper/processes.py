"""Facts about processes, read from /proc. A pid alone names nobody (it is reused); pid and start time together do."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class ProcessId:
    """One process, for as long as this kernel runs."""

    pid: int
    started: int


def identify(pid: int) -> ProcessId | None:
    """The living process with this pid; None when there is none (a zombie is none)."""
    fields = _stat(pid)
    if fields is None or fields[0] in ("Z", "X"):
        return None
    return ProcessId(pid, int(fields[19]))


def is_alive(process: ProcessId) -> bool:
    return identify(process.pid) == process


def members(group: int) -> list[int]:
    """The living processes of a process group."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - bare names, a thousand of them
        if name.isdigit():
            fields = _stat(int(name))
            if fields is not None and int(fields[2]) == group and fields[0] not in ("Z", "X"):
                found.append(int(name))
    return found


def kill_group(group: int, number: signal.Signals) -> bool:
    """Signal every process of the group; False when there is none left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # all that is left of it has changed its user
        return False
    return True


def resident_bytes(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return None


def command_of(pid: int) -> str:
    """What a process calls itself, for people; empty when it is not ours to see."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode(errors="replace").strip() or Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def kernel_boot() -> str:
    """Changes with every boot of the machine; start times are only comparable within one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _stat(pid: int) -> list[str] | None:
    """The fields after the name: state is 0, parent 1, group 2, start time 19."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()
