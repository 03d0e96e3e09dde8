"""The list of processes, listening sockets and their owners, and the total use."""

from __future__ import annotations

import os

from freehold.guest.batch import BatchOperation
from freehold.guest.process_table import PAGE, list_processes, read_bytes, read_command_line
from freehold.guest.spawn import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from freehold.guest.batch import Steps
    from freehold.guest.link import GuestChannel
    from freehold.guest.process import ChildProcesses

MAX_ROWS = 20_000
MAX_COMMAND_LENGTH = 1000
SOCKET_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LISTENING = b"0A"


class ProcessList(BatchOperation):
    def __init__(self, nursery: ChildProcesses, channel: GuestChannel) -> None:
        self._nursery = nursery
        super().__init__(nursery.loop, channel)

    def answer(self) -> Steps:
        yield from self.record({"ok": (yield from self.parts(self._rows(), MAX_ROWS))})
        self._channel.finish()

    def _rows(self) -> Generator[list[Any], None, None]:
        for one in list_processes():
            command = "\0".join(read_command_line(one.pid))[:MAX_COMMAND_LENGTH]
            yield [
                one.pid, one.parent, one.session, one.name, one.state, one.cpu, one.memory, one.threads, one.started,
                command.split("\0") if command else [], self._nursery.is_child(one.pid),
            ]  # fmt: skip


class ListeningSockets(BatchOperation):
    """The TCP sockets that listen: [address, port, inode], the address in hexadecimal as the kernel writes it."""

    def __init__(self, nursery: ChildProcesses, channel: GuestChannel) -> None:
        super().__init__(nursery.loop, channel)

    def answer(self) -> Steps:
        yield from self.record({"ok": (yield from self.parts(self._rows(), MAX_ROWS))})
        self._channel.finish()

    def _rows(self) -> Generator[list[Any] | None, None, None]:
        for table in SOCKET_TABLES:
            for line in _lines(table):
                words = line.split()
                if len(words) < 10 or words[3] != LISTENING:
                    break  # the kernel lists those that listen first
                address, _, port = words[1].partition(b":")
                yield [address.decode("ascii"), int(port, 16), int(words[9])]
            yield None


def _lines(table: str) -> Generator[bytes, None, None]:
    """The lines of a table of the kernel, without its head. None when the kernel has no such table."""
    try:
        descriptor = os.open(table, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rest, is_head = b"", True
        while data := os.read(descriptor, 65536):
            *lines, rest = (rest + data).split(b"\n")
            yield from lines[1:] if is_head else lines
            is_head = False
    finally:
        os.close(descriptor)


class SocketOwners(BatchOperation):
    """The process that holds each socket. Only the guest can inspect the processes of all sessions.

    With `apart` it looks from the domain of a session, where only the processes of that session can be inspected.
    """

    def __init__(self, nursery: ChildProcesses, channel: GuestChannel, message: dict[str, Any]) -> None:
        self._wanted = {f"socket:[{int(number)}]": int(number) for number in message.get("sockets") or ()}
        self._domains = nursery.domains
        self._apart = to_bytes(message.get("apart") or "")
        super().__init__(nursery.loop, channel)

    def answer(self) -> Steps:
        yield from self.record({"ok": (yield from self.parts(self._rows(), MAX_ROWS))})
        self._channel.finish()

    def _rows(self) -> Generator[list[int] | None, None, None]:
        for one in list_processes():
            found: list[int] = []
            if self._apart:
                self._domains.run_in(self._apart, lambda pid=one.pid, found=found: self._look(pid, found))  # type: ignore[misc]
            else:
                self._look(one.pid, found)
            for number in found:
                yield [number, one.pid]
            yield None

    def _look(self, pid: int, found: list[int]) -> int:
        folder = f"/proc/{pid}/fd"
        try:
            for name in os.listdir(folder):  # noqa: PTH208 - pathlib is too slow to import here
                number = self._wanted.get(os.readlink(f"{folder}/{name}"))  # noqa: PTH115
                if number is not None:
                    found.append(number)
        except OSError:
            pass  # it has ended meanwhile, or is not to be inspected from here
        return 0


class MemoryMeasurement(BatchOperation):
    """The memory of each process: [leader, bytes]. `leader` is the wanted process that it is or descends from, or 0.

    Pages that several processes share count for each in part, so that the sum is what all of them use. The last rows
    are temporary files, which are memory too.
    """

    def __init__(self, nursery: ChildProcesses, channel: GuestChannel, message: dict[str, Any]) -> None:
        self._wanted = {int(pid) for pid in message.get("leaders") or ()}
        super().__init__(nursery.loop, channel)

    def answer(self) -> Steps:
        yield from self.record({"ok": (yield from self.parts(self._rows(), MAX_ROWS))})
        self._channel.finish()

    def _rows(self) -> Generator[list[int] | None, None, None]:
        running = {one.pid: one for one in list_processes() if one.state not in "ZX"}
        for pid, one in running.items():
            leader, seen = pid, 0
            while leader in running and leader not in self._wanted and seen < len(running):
                leader, seen = running[leader].parent, seen + 1
            yield [leader if leader in self._wanted else 0, _proportional_memory(pid) or one.memory]
            yield None
        yield [0, own_memory()]
        for folder in ("/tmp", "/dev/shm"):  # noqa: S108 - measured, not used
            try:
                found = os.statvfs(folder)
            except OSError:
                continue
            yield [0, (found.f_blocks - found.f_bfree) * found.f_frsize]


def _proportional_memory(pid: int) -> int:
    """0 when the kernel does not say it, as for a process that forbids inspection."""
    try:
        _, found, rest = read_bytes(f"/proc/{pid}/smaps_rollup").partition(b"\nPss:")
        return int(rest.split(None, 1)[0]) * 1024 if found else 0
    except (OSError, ValueError, IndexError):
        return 0


def own_memory() -> int:
    return int(read_bytes("/proc/self/statm").split()[1]) * PAGE


def measure_usage() -> dict[str, Any]:
    """What all processes use now, the guest included."""
    own = os.times()
    count, threads, cpu, memory = 1, 1, own.user + own.system + own.children_user + own.children_system, own_memory()
    for one in list_processes():
        count += 1
        threads += one.threads
        cpu += one.cpu
        memory += one.memory
    return {"processes": count, "threads": threads, "cpu": cpu, "memory": memory}
