"""The list of processes, and what they use together."""

from __future__ import annotations

import os

from freehold.guest.batch import Batch
from freehold.guest.census import PAGE, command_line, read_bytes, residents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from freehold.guest.batch import Steps
    from freehold.guest.link import Channel
    from freehold.guest.process import Nursery

MOST = 20_000
ARGUMENTS = 1000


class Roster(Batch):
    def __init__(self, nursery: Nursery, channel: Channel) -> None:
        self._nursery = nursery
        super().__init__(nursery.loop, channel)

    def answer(self) -> Steps:
        yield from self.record({"ok": (yield from self.parts(self._rows(), MOST))})
        self._channel.finish()

    def _rows(self) -> Generator[list[Any], None, None]:
        for one in residents():
            command = "\0".join(command_line(one.pid))[:ARGUMENTS]
            yield [
                one.pid, one.parent, one.session, one.name, one.state, one.cpu, one.memory, one.threads, one.started,
                command.split("\0") if command else [], self._nursery.leads(one.pid),
            ]  # fmt: skip


class Holders(Batch):
    """Which process has which socket: only the guest sees into all of them, since sessions are apart."""

    def __init__(self, nursery: Nursery, channel: Channel, message: dict[str, Any]) -> None:
        self._wanted = {f"socket:[{int(number)}]": int(number) for number in message.get("sockets") or ()}
        super().__init__(nursery.loop, channel)

    def answer(self) -> Steps:
        yield from self.record({"ok": (yield from self.parts(self._rows(), MOST))})
        self._channel.finish()

    def _rows(self) -> Generator[list[int] | None, None, None]:
        for one in residents():
            try:
                folder = f"/proc/{one.pid}/fd"
                for name in os.listdir(folder):  # noqa: PTH208 - pathlib is too slow to import here
                    number = self._wanted.get(os.readlink(f"{folder}/{name}"))  # noqa: PTH115
                    if number is not None:
                        yield [number, one.pid]
            except OSError:
                pass  # it went while we looked
            yield None


def own_memory() -> int:
    return int(read_bytes("/proc/self/statm").split()[1]) * PAGE


def measure() -> dict[str, Any]:
    """What is used now by all together, the guest included."""
    own = os.times()
    count, threads, cpu, memory = 1, 1, own.user + own.system + own.children_user + own.children_system, own_memory()
    for one in residents():
        count += 1
        threads += one.threads
        cpu += one.cpu
        memory += one.memory
    return {"processes": count, "threads": threads, "cpu": cpu, "memory": memory}
