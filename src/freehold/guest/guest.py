"""The guest itself: takes links on the inherited socket, starts what they ask for, and cannot be stopped from inside."""

from __future__ import annotations

import _socket
import os
import sys

from freehold.guest import kernel
from freehold.guest.census import residents, send
from freehold.guest.files import FileWork
from freehold.guest.kernel import signals
from freehold.guest.link import Link, Operation
from freehold.guest.loop import READ, Loop, complain
from freehold.guest.process import Nursery, Process
from freehold.guest.relay import Forward, Held, Listener
from freehold.guest.roster import Holders, Roster, measure
from freehold.guest.spawn import SpawnError
from freehold.guest.terminal import Terminals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from freehold.guest.link import Channel

    Begin = Callable[["Guest", Channel, dict[str, Any]], Operation | None]

GRACE = 3.0


class Guest:
    def __init__(self, listener: int, workspace: bytes, held: Iterable[int]) -> None:
        os.set_inheritable(listener, False)
        kernel.hide_from_peers()
        self.loop = Loop()
        self.held = Held(self.loop, held)
        self.links: set[Link] = set()
        self._ignore_signals()
        self._term = kernel.open_signal_descriptor(signals.SIGTERM)
        self.nursery = Nursery(self.loop, workspace, kernel.open_signal_descriptor(signals.SIGCHLD))
        self.terminals = Terminals(self.nursery)
        self._listener = _socket.socket(fileno=listener)
        self._listener.setblocking(False)
        self.loop.watch(listener, READ, self._knock)
        self.loop.watch(self._term, READ, self._asked_to_end)

    def run(self) -> None:
        self.loop.run()

    def _ignore_signals(self) -> None:
        """Handlers rather than SIG_IGN: a child starts with the defaults again."""
        for number in signals.valid_signals():
            if number in (
                signals.SIGSEGV,
                signals.SIGBUS,
                signals.SIGFPE,
                signals.SIGILL,
                signals.SIGABRT,
                signals.SIGPIPE,
            ):
                continue
            try:
                signals.signal(number, _nothing)
            except (OSError, ValueError):
                continue

    def _asked_to_end(self, events: int) -> None:
        sender = kernel.read_sender(self._term)
        if sender == 0:  # from outside of our pid namespace; nobody in here can do that
            self.shut_down()

    def shut_down(self) -> None:
        """SIGTERM for all, then the end. What still runs after the grace dies with pid 1."""
        for resident in residents():
            send(resident.pid, signals.SIGTERM)
            send(resident.pid, signals.SIGCONT)
        self.loop.watch(self._term, READ, self._wait_for_all)
        self.loop.later(GRACE, self._end)
        self._wait_for_all()

    def _wait_for_all(self, events: int = 0) -> None:
        if any(resident.state not in "ZX" for resident in residents()):
            self.loop.later(0.02, self._wait_for_all)
        else:
            self._end()

    def _end(self) -> None:
        self.loop.running = False

    def _knock(self, events: int) -> None:
        try:
            descriptor, _ = self._listener._accept()  # type: ignore[attr-defined]
        except (BlockingIOError, InterruptedError, ConnectionError):
            return
        except OSError as error:  # out of descriptors: the others go on, and this one is taken up when there is room
            complain(error)
            self.loop.forget(self._listener.fileno())
            self.loop.later(0.2, lambda: self.loop.watch(self._listener.fileno(), READ, self._knock))
            return
        self.links.add(Link(self.loop, _socket.socket(fileno=descriptor), self._begin, self.links.discard))

    def _begin(self, channel: Channel, request: dict[str, Any]) -> Operation:
        begin = OPERATIONS.get(request.get("op", ""))
        try:
            if begin is None:
                channel.fail("computer.bad-request", f"This guest knows no operation {request.get('op')!r}")
                return Operation()
            return begin(self, channel, request) or Operation()
        except SpawnError as error:
            channel.fail(error.code, str(error))
        except OSError as error:
            channel.fail("computer.refused", str(error))
        except MemoryError:
            channel.fail("computer.no-memory", "The computer has no memory left for this")
        except (TypeError, ValueError, KeyError) as error:
            channel.fail("computer.bad-request", f"{type(error).__name__}: {error}")
        return Operation()


def _nothing(number: int, frame: object) -> None:
    return


def _spawn(guest: Guest, channel: Channel, request: dict[str, Any]) -> Operation:
    return Process(guest.nursery, channel, request)


def _files(guest: Guest, channel: Channel, request: dict[str, Any]) -> Operation:
    return FileWork(guest.loop, channel, guest.nursery.workspace, request)


def _search(guest: Guest, channel: Channel, request: dict[str, Any]) -> Operation:
    from freehold.guest.search import Search

    return Search(guest.nursery, channel, request)


def _forward(guest: Guest, channel: Channel, request: dict[str, Any]) -> Operation:
    return Forward(guest.loop, channel, request)


def _listen(guest: Guest, channel: Channel, request: dict[str, Any]) -> Operation:
    return Listener(guest.loop, channel, request, guest.held)


def _processes(guest: Guest, channel: Channel, request: dict[str, Any]) -> Operation:
    return Roster(guest.nursery, channel)


def _holders(guest: Guest, channel: Channel, request: dict[str, Any]) -> Operation:
    return Holders(guest.nursery, channel, request)


def _stats(guest: Guest, channel: Channel, request: dict[str, Any]) -> None:
    channel.finish({"ok": measure()})


def _terminal(guest: Guest, channel: Channel, request: dict[str, Any]) -> Operation:
    return guest.terminals.start(channel, request)


def _attach(guest: Guest, channel: Channel, request: dict[str, Any]) -> Operation:
    return guest.terminals.attach(channel, request)


def _terminals(guest: Guest, channel: Channel, request: dict[str, Any]) -> None:
    channel.finish({"ok": guest.terminals.rows()})


def _close_terminal(guest: Guest, channel: Channel, request: dict[str, Any]) -> None:
    guest.terminals.find(request).close()
    channel.finish({"ok": True})


def _shut_down(guest: Guest, channel: Channel, request: dict[str, Any]) -> None:
    channel.finish({"ok": True})
    guest.loop.after(guest.shut_down)


OPERATIONS: dict[str, Begin] = {
    "spawn": _spawn,
    "files": _files,
    "search": _search,
    "forward": _forward,
    "listen": _listen,
    "processes": _processes,
    "holders": _holders,
    "stats": _stats,
    "terminal": _terminal,
    "terminal.attach": _attach,
    "terminal.close": _close_terminal,
    "terminals": _terminals,
    "shutdown": _shut_down,
}


def main() -> None:
    arguments = sys.argv[1:]
    options = dict(zip(arguments[::2], arguments[1::2]))  # noqa: B905 - the guest also runs on Python 3.9
    os.umask(0o022)
    workspace = os.fsencode(options.get("--workspace", "/workspace"))
    held = [int(port) for port in options.get("--hold", "").split(",") if port]
    guest = Guest(int(options["--listen"]), workspace if os.access(workspace, os.X_OK) else b"/", held)
    guest.run()
