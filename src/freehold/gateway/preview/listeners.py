"""Which ports something inside listens on, and what it is. All of it is the computer's own word."""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.gateway.preview.hosts import is_shown
from freehold.gateway.topics import Topic

LOOK_EVERY = 1.0
PATIENCE = 5.0
MAX_PORTS = 64
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENING = "0A"
# 127.0.0.1 or every address, as each table spells them: a forward goes to 127.0.0.1 and reaches nothing else.
_REACHED = frozenset({"0100007F", "00000000", "0" * 32, "0000000000000000FFFF00000100007F"})
_SOCKET = re.compile(r"[1-9][0-9]{0,11}")

log = logging.getLogger("freehold.gateway.preview")


@dataclass(frozen=True)
class Listener:
    """A port, the program that listens there if it can be told, and the manifest's service that was to do so."""

    port: int
    process: str | None = None
    service: str | None = None


def read_sockets(tables: str) -> dict[int, str]:
    """Ports that can be shown, each with the number of its socket."""
    found: dict[int, str] = {}
    for line in tables.splitlines():
        words = line.split()
        if len(words) < 10 or words[3] != _LISTENING:
            continue
        address, _, port = words[1].partition(":")
        try:
            number = int(port, 16)
        except ValueError:
            continue
        if address in _REACHED and is_shown(number) and len(found) < MAX_PORTS:
            found.setdefault(number, words[9])
    return found


class Known:
    """Programs by the number of their socket."""

    def __init__(self) -> None:
        self.processes: dict[str, str] = {}
        self._sockets: frozenset[str] = frozenset()

    async def look(self, computer: Computer, sockets: Mapping[int, str]) -> None:
        wanted = frozenset(inode for inode in sockets.values() if _SOCKET.fullmatch(inode))
        if wanted == self._sockets:
            return
        self._sockets, self.processes = wanted, {}
        if not wanted:
            return
        holders = await computer.socket_holders([int(inode) for inode in wanted])
        names = {one.pid: _name(one.name, one.command) for one in await computer.processes()}
        for inode, pid in holders.items():
            name = names.get(pid)
            if name is not None:
                self.processes[str(inode)] = name


def _name(name: str, command: Sequence[str]) -> str:
    """What a person would call it: the program and what it runs, for many are but `node` or `python3`."""
    words = [word.rpartition("/")[2] for word in command[:2] if not word.startswith("-")]
    return "".join(one for one in " ".join(words) or name if one.isprintable())[:60]


class Ports:
    """What can be looked at; `watch` fills the topic while somebody reads it, and leaves the computer alone otherwise."""

    def __init__(self, computer: Callable[[], Computer], services: Mapping[int, str], topic: Topic) -> None:
        self._computer = computer
        self._services = services
        self._topic = topic
        self._known = Known()
        self._one = asyncio.Lock()

    async def find(self) -> list[Listener]:
        """By port. Raises `computer.not-connected` while the computer is away."""
        async with self._one:
            computer = self._computer()
            said = await computer.run(["cat", *_TABLES], timeout=PATIENCE)
            sockets = read_sockets(said.stdout.decode("latin-1"))
            await self._known.look(computer, sockets)
            processes = self._known.processes
        return [
            Listener(port, processes.get(inode), self._services.get(port)) for port, inode in sorted(sockets.items())
        ]

    async def watch(self, describe: Callable[[list[Listener]], dict[str, Any]]) -> None:
        """Until cancelled."""
        told: list[Listener] | None = None
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if not self._topic.readers:
                told = None
                continue
            try:
                found = await self.find()
            except FreeholdError as error:
                log.debug("the ports inside could not be read", extra={"error": error})
                found = []
            if found != told:
                told = found
                self._topic.publish(describe(found))
