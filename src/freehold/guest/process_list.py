"""The list of processes, the owners of sockets, and the total use."""

from __future__ import annotations

import os

from freehold.guest.batch import BatchOperation
from freehold.guest.process_table import PAGE, list_processes, read_bytes, read_command_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from freehold.guest.batch import Steps
    from freehold.guest.link import GuestChannel
    from freehold.guest.process import ChildProcesses

MAX_ROWS = 20_000
MAX_COMMAND_LENGTH = 1000


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


class SocketOwners(BatchOperation):
    """The process that holds each socket. Only the guest can inspect the processes of all sessions."""

    def __init__(self, nursery: ChildProcesses, channel: GuestChannel, message: dict[str, Any]) -> None:
        self._wanted = {f"socket:[{int(number)}]": int(number) for number in message.get("sockets") or ()}
        super().__init__(nursery.loop, channel)

    def answer(self) -> Steps:
        yield from self.record({"ok": (yield from self.parts(self._rows(), MAX_ROWS))})
        self._channel.finish()

    def _rows(self) -> Generator[list[int] | None, None, None]:
        for one in list_processes():
            try:
                folder = f"/proc/{one.pid}/fd"
                for name in os.listdir(folder):  # noqa: PTH208 - pathlib is too slow to import here
                    number = self._wanted.get(os.readlink(f"{folder}/{name}"))  # noqa: PTH115
                    if number is not None:
                        yield [number, one.pid]
            except OSError:
                pass  # it has ended meanwhile
            yield None


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
