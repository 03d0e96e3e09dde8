"""Terminals: a pty each, that outlives the link it was opened on and can be watched from several at once."""

from __future__ import annotations

import fcntl
import os
import termios
import time
from _struct import Struct

from freehold.guest.census import end_all_of, send
from freehold.guest.link import Operation
from freehold.guest.loop import READ
from freehold.guest.spawn import Request, SpawnError
from freehold.guest.streams import CHUNK, Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource import struct_rusage
    from typing import Any

    from freehold.guest.link import Channel
    from freehold.guest.process import Nursery

SCROLLBACK = 256 * 1024
LAG = 64 * 1024
"""A viewer this far behind holds the terminal back, unless another keeps up; then it is skipped ahead instead."""
MOST = 64
MAX_ENDED = 16
LINGER = 0.1
SIZE = Struct("HHHH")


def fits(rows: int, cols: int) -> bool:
    return 0 < rows < 10000 and 0 < cols < 10000


class Terminals:
    """All of a guest's terminals by id, ended ones included until somebody has seen their end."""

    def __init__(self, nursery: Nursery) -> None:
        self.nursery = nursery
        self.open: dict[str, Terminal] = {}

    def start(self, channel: Channel, message: dict[str, Any]) -> Operation:
        if sum(terminal.exit is None for terminal in self.open.values()) >= MOST:
            raise SpawnError("computer.too-many-terminals", f"There are {MOST} terminals open already")
        terminal = Terminal(self, message)
        self.open[terminal.name] = terminal
        return Viewer(terminal, channel, 0)

    def attach(self, channel: Channel, message: dict[str, Any]) -> Operation:
        since = message.get("since")
        return Viewer(self.find(message), channel, int(since) if since is not None else None)

    def find(self, message: dict[str, Any]) -> Terminal:
        terminal = self.open.get(str(message.get("id")))
        if terminal is None:
            raise SpawnError("computer.no-terminal", f"There is no terminal {message.get('id')!r}")
        return terminal

    def rows(self) -> list[dict[str, Any]]:
        return [terminal.describe() for terminal in self.open.values()]

    def tidy(self) -> None:
        ended = [terminal for terminal in self.open.values() if terminal.exit is not None]
        for terminal in ended[: max(0, len(ended) - MAX_ENDED)]:
            self.open.pop(terminal.name, None)


class Terminal:
    def __init__(self, terminals: Terminals, message: dict[str, Any]) -> None:
        nursery = terminals.nursery
        self._terminals = terminals
        self._loop = nursery.loop
        self._identity = nursery.name()
        self.name = os.urandom(6).hex()
        self.viewers: list[Viewer] = []
        self._scrollback = max(4096, min(int(message.get("scrollback") or SCROLLBACK), 4 * 1024 * 1024))
        self._tail = bytearray()
        self.total = 0
        self._status: int | None = None
        self._hung_up = False
        self.exit: dict[str, Any] | None = None
        self._argv = message.get("argv")
        self._began = time.time()
        request = Request(message, nursery.environment, nursery.workspace, self._identity)
        self.master, slave = os.openpty()
        try:
            self.resize(int(message.get("rows") or 24), int(message.get("cols") or 80))
            self.pid = nursery.start(request, (slave, slave, slave), terminal=True)
        except BaseException:
            os.close(self.master)
            raise
        finally:
            os.close(slave)
        os.set_blocking(self.master, False)
        nursery.adopt(self.pid, self._exited)
        self.resume()

    @property
    def start(self) -> int:
        """Where the kept output begins."""
        return self.total - len(self._tail)

    def output(self, position: int, most: int) -> bytes:
        at = position - self.start
        return bytes(self._tail[at : at + most])

    def describe(self) -> dict[str, Any]:
        return {
            "id": self.name, "pid": self.pid, "argv": self._argv, "rows": self.rows, "cols": self.cols,
            "began": self._began, "viewers": len(self.viewers), "ended": self.exit is not None,
        }  # fmt: skip

    def resize(self, rows: int, cols: int) -> None:
        if not fits(rows, cols):
            raise SpawnError("computer.bad-request", f"A terminal cannot have {rows} rows and {cols} columns")
        self.rows, self.cols = rows, cols
        if self.exit is None:
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, SIZE.pack(rows, cols, 0, 0))

    def signal(self, number: int) -> None:
        """To whatever is in the foreground."""
        try:
            os.killpg(os.tcgetpgrp(self.master), number)
        except OSError:
            send(self.pid, number)

    def close(self) -> None:
        """End everything that runs in it."""
        if self._status is None:
            end_all_of(self.pid, self._identity)
        self._terminals.open.pop(self.name, None)

    def resume(self) -> None:
        if not self._hung_up and (not self.viewers or any(viewer.lag < LAG for viewer in self.viewers)):
            self._loop.watch(self.master, READ, self._ready)

    def _ready(self, events: int) -> None:
        if self._take():
            for viewer in list(self.viewers):
                viewer.pump()
            if self.viewers and all(viewer.lag >= LAG for viewer in self.viewers):
                self._loop.forget(self.master)

    def _take(self) -> bool:
        """Whether something came. At the end of the pty all is over, if the leader is gone too."""
        try:
            data = os.read(self.master, CHUNK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:  # EIO: nobody holds the other side any more
            data = b""
        if not data:
            self._loop.forget(self.master)
            self._hung_up = True
            self._settle()
            return False
        self._tail += data
        self.total += len(data)
        if len(self._tail) > 2 * self._scrollback:
            del self._tail[: len(self._tail) - self._scrollback]
        return True

    def _exited(self, status: int, usage: struct_rusage) -> None:
        self._status = status
        if self._hung_up:
            self._settle()
        else:
            self._loop.watch(self.master, READ, self._ready)
            self._loop.later(LINGER, self._abandon)

    def _abandon(self) -> None:
        """Something in the background still holds the terminal; it has had its moment."""
        while not self._hung_up and self._take():
            continue
        self._hung_up = True
        self._settle()

    def _settle(self) -> None:
        status = self._status
        if status is None or self.exit is not None:
            return
        self.exit = {
            "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        }
        self._loop.forget(self.master)
        os.close(self.master)
        for viewer in list(self.viewers):
            viewer.pump()
        self._terminals.tidy()

    def seen(self) -> None:
        self._terminals.open.pop(self.name, None)


class Viewer(Operation):
    """One channel's view of a terminal. Closing it leaves the terminal as it is."""

    def __init__(self, terminal: Terminal, channel: Channel, since: int | None) -> None:
        self._terminal = terminal
        self._channel = channel
        self.position = terminal.start if since is None else max(terminal.start, min(since, terminal.total))
        self._sink = Sink(terminal._loop, channel, 0, os.dup(terminal.master)) if terminal.exit is None else None
        terminal.viewers.append(self)
        channel.say({**terminal.describe(), "position": self.position})
        self._terminal._loop.after(self.pump)

    @property
    def lag(self) -> int:
        return self._terminal.total - self.position

    def pump(self) -> None:
        if not self._channel.open:
            return
        if self.position < self._terminal.start:
            self._channel.say({"skipped": self._terminal.start - self.position})
            self.position = self._terminal.start
        while self.lag:
            room = self._channel.room(0)
            if room <= 0:
                return
            data = self._terminal.output(self.position, min(room, CHUNK))
            self._channel.send(0, data)
            self.position += len(data)
        if self._terminal.exit is not None:
            self._channel.finish(self._terminal.exit)
            self._leave()
            self._terminal.seen()

    def data(self, stream: int, payload: bytes) -> None:
        if self._sink is None:
            self._channel.grant(stream, len(payload))
        else:
            self._sink.put(payload)

    def credited(self) -> None:
        self.pump()
        self._terminal.resume()

    def message(self, message: dict[str, Any]) -> None:
        if self._terminal.exit is not None:
            return
        if "rows" in message:
            rows, cols = message["rows"], message.get("cols")
            if isinstance(rows, int) and isinstance(cols, int) and fits(rows, cols):
                self._terminal.resize(rows, cols)
        elif "signal" in message:
            self._terminal.signal(int(message["signal"]))
        elif message.get("close"):
            self._terminal.close()

    def closed(self) -> None:
        self._leave()
        self._terminal.resume()

    def _leave(self) -> None:
        if self in self._terminal.viewers:
            self._terminal.viewers.remove(self)
        if self._sink is not None:
            self._sink.close()
