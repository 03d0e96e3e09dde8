"""Terminals: each is a pty that outlives the link that opened it, and may have several viewers."""

from __future__ import annotations

import fcntl
import os
import termios
import time
from _struct import Struct

from freehold.guest.codec import shorten
from freehold.guest.link import Operation
from freehold.guest.loop import READ
from freehold.guest.process_table import kill_tree, send_signal
from freehold.guest.spawn import OperationError, SpawnRequest
from freehold.guest.streams import CHUNK, StreamSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource import struct_rusage
    from typing import Any

    from freehold.guest.link import GuestChannel
    from freehold.guest.process import ChildProcesses

SCROLLBACK = 256 * 1024
LAG = 64 * 1024
"""Bytes that a viewer may be behind. If all viewers are, the terminal waits; if only some are, they skip output."""
MAX_TERMINALS = 64
MAX_ENDED = 16
MAX_COMMAND_LENGTH = 250
LINGER = 0.1
SIZE = Struct("HHHH")


def is_valid_size(rows: int, cols: int) -> bool:
    return 0 < rows < 10000 and 0 < cols < 10000


def shorten_command(arguments: object) -> list[str]:
    """A command as it is shown in lists of terminals. The whole would make the list too long for one answer."""
    shown: list[str] = []
    left = MAX_COMMAND_LENGTH
    for argument in arguments if isinstance(arguments, list) else ():
        if left <= 0:
            break
        shown.append(shorten(str(argument), left))
        left -= len(shown[-1]) + 1
    return shown


class GuestTerminals:
    """Every terminal by id. One that has ended is kept until a viewer has seen its end."""

    def __init__(self, nursery: ChildProcesses) -> None:
        self.nursery = nursery
        self.open: dict[str, GuestTerminal] = {}

    def start(self, channel: GuestChannel, message: dict[str, Any]) -> Operation:
        if sum(terminal.exit is None for terminal in self.open.values()) >= MAX_TERMINALS:
            raise OperationError(
                "computer.too-many-terminals", f"{MAX_TERMINALS} terminals are open, which is the limit"
            )
        terminal = GuestTerminal(self, message)
        self.open[terminal.name] = terminal
        return TerminalViewer(terminal, channel, 0)

    def attach(self, channel: GuestChannel, message: dict[str, Any]) -> Operation:
        since = message.get("since")
        return TerminalViewer(self.find(message), channel, int(since) if since is not None else None)

    def find(self, message: dict[str, Any]) -> GuestTerminal:
        terminal = self.open.get(str(message.get("id")))
        if terminal is None:
            raise OperationError("computer.no-terminal", f"There is no terminal {message.get('id')!r}")
        return terminal

    def rows(self) -> list[dict[str, Any]]:
        return [terminal.describe() for terminal in self.open.values()]

    def tidy(self) -> None:
        ended = [terminal for terminal in self.open.values() if terminal.exit is not None]
        for terminal in ended[: max(0, len(ended) - MAX_ENDED)]:
            self.open.pop(terminal.name, None)


class GuestTerminal:
    def __init__(self, terminals: GuestTerminals, message: dict[str, Any]) -> None:
        nursery = terminals.nursery
        self._terminals = terminals
        self._loop = nursery.loop
        self._identity = nursery.new_marker()
        self.name = os.urandom(6).hex()
        self.viewers: list[TerminalViewer] = []
        self._scrollback = max(4096, min(int(message.get("scrollback") or SCROLLBACK), 4 * 1024 * 1024))
        self._tail = bytearray()
        self.total = 0
        self._status: int | None = None
        self._hung_up = False
        self.exit: dict[str, Any] | None = None
        self._argv = shorten_command(message.get("argv"))
        self._began = time.time()
        request = SpawnRequest(message, nursery.environment, nursery.workspace, self._identity)
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
        """The position at which the kept output begins."""
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
        if not is_valid_size(rows, cols):
            raise OperationError("computer.bad-request", f"{rows} rows and {cols} columns is not a valid terminal size")
        self.rows, self.cols = rows, cols
        if self.exit is None:
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, SIZE.pack(rows, cols, 0, 0))

    def signal(self, number: int, to_group: bool) -> None:
        """Send a signal to the foreground process group, or to the first program when there is none or it is meant."""
        try:
            group = os.tcgetpgrp(self.master) if to_group else 0
            if group > 0:  # 0 is no group here, but the group of the guest for the kernel
                os.killpg(group, number)
                return
        except OSError:
            pass
        if self._status is None:
            send_signal(self.pid, number)

    def close(self) -> None:
        """Kill everything that runs in it."""
        if self._status is None:
            kill_tree(self.pid, self._identity)
        self._terminals.open.pop(self.name, None)

    def resume(self) -> None:
        if not self._hung_up and (not self.viewers or any(viewer.lag < LAG for viewer in self.viewers)):
            self._loop.watch(self.master, READ, self._ready)

    def _ready(self, events: int) -> None:
        if self._read():
            for viewer in list(self.viewers):
                viewer.pump()
            if self.viewers and all(viewer.lag >= LAG for viewer in self.viewers):
                self._loop.forget(self.master)

    def _read(self) -> bool:
        """Read once; whether there was data. The terminal is over when the pty and the leader have ended."""
        try:
            data = os.read(self.master, CHUNK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:  # EIO: no process has the slave side open
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
            self._loop.call_later(LINGER, self._abandon)

    def _abandon(self) -> None:
        """A background process still has the terminal open after LINGER: stop reading."""
        while not self._hung_up and self._read():
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


class TerminalViewer(Operation):
    """One channel's view of a terminal. Closing it does not affect the terminal."""

    def __init__(self, terminal: GuestTerminal, channel: GuestChannel, since: int | None) -> None:
        self._terminal = terminal
        self._channel = channel
        self.position = terminal.start if since is None else max(terminal.start, min(since, terminal.total))
        self._sink = StreamSink(terminal._loop, channel, 0, os.dup(terminal.master)) if terminal.exit is None else None
        terminal.viewers.append(self)
        channel.send_message({**terminal.describe(), "position": self.position})
        self._terminal._loop.call_after_round(self.pump)

    @property
    def lag(self) -> int:
        return self._terminal.total - self.position

    def pump(self) -> None:
        if not self._channel.is_open:
            return
        if self.position < self._terminal.start:
            self._channel.send_message({"skipped": self._terminal.start - self.position})
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
            self._sink.write(payload)

    def credited(self) -> None:
        self.pump()
        self._terminal.resume()

    def message(self, message: dict[str, Any]) -> None:
        if self._terminal.exit is not None:
            return
        if "rows" in message:
            rows, cols = message["rows"], message.get("cols")
            if isinstance(rows, int) and isinstance(cols, int) and is_valid_size(rows, cols):
                self._terminal.resize(rows, cols)
        elif "signal" in message:
            number = message["signal"]
            if isinstance(number, int) and 0 < number < 65:
                self._terminal.signal(number, bool(message.get("group", True)))
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
