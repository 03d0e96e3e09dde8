"""What the kernel of a virtual machine counts, and how its processes are stopped when a disk limit is reached."""

from dataclasses import dataclass

from freehold.computer.contract.report import MachineUsage
from freehold.computer.microvm.control import ControlPort
from freehold.computer.walls.disk_guard import DiskUsage


@dataclass
class VmProcesses:
    """The processes inside, as far as the host can do something about them. `pids` are QEMU's and virtiofsd's.

    A machine that was loaded again has others.
    """

    control: ControlPort
    uid: int
    pids: tuple[int, ...]

    def list_pids(self) -> list[int]:
        return list(self.pids)

    def hold_writes(self) -> None:
        self.control.ask("hold", held=True)

    def release_writes(self) -> None:
        self.control.ask("hold", held=False)

    def kill_all_but_guest(self) -> int:
        return int(self.control.ask("kill").get("killed", 0))


def read_usage(control: ControlPort, disk: DiskUsage | None, timeout: float) -> MachineUsage:
    """The counters of the computer's group inside. Raises if the machine does not answer."""
    texts = control.ask("usage", timeout)
    stat = _keyed(texts.get("memory.stat"))
    events = _keyed(texts.get("memory.events"))
    cache = stat.get("file", 0) - stat.get("shmem", 0)
    return MachineUsage(
        memory=max(0, _number(texts.get("memory.current")) - cache),
        processes=_number(texts.get("pids.current")),
        cpu_seconds=_keyed(texts.get("cpu.stat")).get("usage_usec", 0) / 1e6,
        disk=None if disk is None else disk.size,
        inodes=None if disk is None else disk.inodes,
        out_of_memory=events.get("oom_kill", 0),
        refused_processes=_keyed(texts.get("pids.events")).get("max", 0),
    )


def _number(text: object) -> int:
    words = text.split() if isinstance(text, str) else []
    return int(words[0]) if words and words[0].isdigit() else 0


def _keyed(text: object) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in text.splitlines() if isinstance(text, str) else ():
        name, _, value = line.partition(" ")
        if value.isdigit():
            found[name] = int(value)
    return found
