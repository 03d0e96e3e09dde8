"""The ports that programs inside the computer listen on. All of it is reported by the computer and not verified."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from freehold.computer import Computer
from freehold.computer.library.process_list import ListeningSocket
from freehold.errors import FreeholdError
from freehold.gateway.preview.hosts import can_preview
from freehold.gateway.topics import Topic

WATCH_INTERVAL = 1.0
MAX_PORTS = 64
# 127.0.0.1 or any address, as the kernel writes them: a forward connects to 127.0.0.1 only.
_REACHED = frozenset({"0100007F", "00000000", "0" * 32, "0000000000000000FFFF00000100007F"})

log = logging.getLogger("freehold.gateway.preview")


@dataclass(frozen=True)
class PortListener:
    """A port, the program that listens on it if known, and the service of the manifest with this port."""

    port: int
    process: str | None = None
    service: str | None = None


def select_previewable(sockets: Iterable[ListeningSocket]) -> dict[int, int]:
    """The ports that can be previewed, each with the inode of its socket."""
    found: dict[int, int] = {}
    for one in sockets:
        if one.address in _REACHED and can_preview(one.port) and len(found) < MAX_PORTS:
            found.setdefault(one.port, one.inode)
    return found


class ProcessNames:
    """The names of programs by the inode of their socket."""

    def __init__(self) -> None:
        self.by_inode: dict[int, str] = {}
        self._sockets: frozenset[int] = frozenset()

    async def update(self, computer: Computer, sockets: Mapping[int, int]) -> None:
        wanted = frozenset(sockets.values())
        if wanted == self._sockets:
            return
        self._sockets, self.by_inode = wanted, {}
        if not wanted:
            return
        holders = await computer.socket_holders(wanted)
        names = {one.pid: _name(one.name, one.command) for one in await computer.processes()}
        for inode, pid in holders.items():
            name = names.get(pid)
            if name is not None:
                self.by_inode[inode] = name


def _name(name: str, command: Sequence[str]) -> str:
    """The program and its first argument, because many programs are only `node` or `python3`."""
    words = [word.rpartition("/")[2] for word in command[:2] if not word.startswith("-")]
    return "".join(one for one in " ".join(words) or name if one.isprintable())[:60]


class PortMonitor:
    """Lists the ports that can be previewed. `watch` publishes them while the topic has a reader."""

    def __init__(self, computer: Callable[[], Computer], services: Mapping[int, str], topic: Topic) -> None:
        self._computer = computer
        self._services = services
        self._topic = topic
        self._known = ProcessNames()
        self._one = asyncio.Lock()

    async def list_ports(self) -> list[PortListener]:
        """In the order of ports. Raises `computer.not-connected`."""
        async with self._one:
            computer = self._computer()
            sockets = select_previewable(await computer.listening_sockets())
            await self._known.update(computer, sockets)
            processes = self._known.by_inode
        return [
            PortListener(port, processes.get(inode), self._services.get(port))
            for port, inode in sorted(sockets.items())
        ]

    async def watch(self) -> None:
        """Publish the list whenever it has changed, until cancelled."""
        published: list[PortListener] | None = None
        while True:
            await asyncio.sleep(WATCH_INTERVAL)
            if not self._topic.readers:
                published = None
                continue
            try:
                if self._computer().is_asleep and published is not None:
                    continue  # the same programs listen when it wakes
                found = await self.list_ports()
            except FreeholdError as error:
                log.debug("the ports inside could not be read", extra={"error": error})
                found = []
            if found != published:
                published = found
                self._topic.publish({"ports": [asdict(one) for one in found]})
