"""The guest: accepts links on the inherited socket, runs their operations, and cannot be stopped from inside."""

from __future__ import annotations

import _socket
import sys

from freehold.guest import kernel, leftovers
from freehold.guest.kernel import os, signals
from freehold.guest.link import GuestLink, Operation
from freehold.guest.loop import READ, Loop, log_error
from freehold.guest.process import ChildProcesses, GuestProcess
from freehold.guest.process_table import list_processes, send_signal
from freehold.guest.relay import GuestForward, GuestListener, ReservedPorts
from freehold.guest.spawn import OperationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from freehold.guest.isolates.service import Isolates
    from freehold.guest.link import GuestChannel
    from freehold.guest.terminal import GuestTerminals

    Begin = Callable[["Guest", GuestChannel, dict[str, Any]], Operation | None]

SHUTDOWN_GRACE = 3.0
FATAL = (
    *(signals.SIGSEGV, signals.SIGBUS, signals.SIGFPE, signals.SIGILL, signals.SIGABRT),
    signals.SIGPIPE,  # Python ignores it, and the start of a child sets the default again
)


class Guest:
    def __init__(
        self,
        listener: int,
        workspace: bytes,
        held: Iterable[int],
        ends_with: int | None = None,
        control: int | None = None,
    ) -> None:
        os.set_inheritable(listener, False)
        os.set_blocking(2, False)  # the host stops reading what is too much, and a guest that waits for it would hang
        kernel.forbid_inspection()
        self.loop = Loop()
        self.reserved_ports = ReservedPorts(self.loop, held)
        self.links: set[GuestLink] = set()
        self._ignore_signals()
        self._term = kernel.open_signal_descriptor(signals.SIGTERM)
        self.children = ChildProcesses(self.loop, workspace, kernel.open_signal_descriptor(signals.SIGCHLD))
        self._terminals: GuestTerminals | None = None
        self._isolates: Isolates | None = None
        self._listener = _socket.socket(fileno=listener)
        self._listener.setblocking(False)
        self.loop.watch(listener, READ, self._accept_link)
        self.loop.watch(self._term, READ, self._on_sigterm)
        if ends_with is not None:
            self.loop.watch(ends_with, 0, self._host_ended)
        if control is not None:
            self.loop.watch(control, READ, lambda events: self._on_control(control))
        self.loop.add_job(leftovers.remove_leftovers(leftovers.read_mounts()))

    def run(self) -> None:
        self.loop.run()

    # What the first command does not need is loaded when it is needed: a computer starts in a few milliseconds.

    @property
    def terminals(self) -> GuestTerminals:
        if self._terminals is None:
            from freehold.guest.terminal import GuestTerminals

            self._terminals = GuestTerminals(self.children)
        return self._terminals

    @property
    def isolates(self) -> Isolates:
        if self._isolates is None:
            from freehold.guest.isolates.service import Isolates

            self._isolates = Isolates(self.children)
        return self._isolates

    def _ignore_signals(self) -> None:
        """The kernel drops every signal to pid 1 that it has no handler for, and a child starts with the defaults.

        Elsewhere there are handlers that do nothing: SIG_IGN would be inherited by children.
        """
        if os.getpid() == 1:
            # What Python ignores, and what a host ignores that was started with nohup, children would ignore as well.
            for number in signals.valid_signals() - {signals.SIGPIPE}:
                if number == signals.SIGINT or signals.getsignal(number) == signals.SIG_IGN:
                    signals.signal(number, signals.SIG_DFL)
            return
        for number in signals.valid_signals():
            if number not in FATAL:
                try:
                    signals.signal(number, _nothing)
                except (OSError, ValueError):
                    continue

    def _on_sigterm(self, events: int) -> None:
        sender = kernel.read_sender(self._term)
        if sender == 0:  # from outside our pid namespace; no process inside can do that
            self.shut_down()

    def _host_ended(self, events: int) -> None:
        """Nobody reads the pipe any more. So it ends even if its host died before the kernel tied their lives together."""
        self._end()

    def _on_control(self, control: int) -> None:
        """A host that cannot send signals asks by a byte. Without a host it ends at once."""
        if os.read(control, 1):
            self.shut_down()
        else:
            self._end()

    def shut_down(self) -> None:
        """Send SIGTERM to all processes and end when they are gone. After the grace the rest dies with pid 1."""
        for resident in list_processes():
            send_signal(resident.pid, signals.SIGTERM)
            send_signal(resident.pid, signals.SIGCONT)
        self.loop.watch(self._term, READ, self._wait_for_all)
        self.loop.call_later(SHUTDOWN_GRACE, self._end)
        self._wait_for_all()

    def _wait_for_all(self, events: int = 0) -> None:
        if any(resident.state not in "ZX" for resident in list_processes()):
            self.loop.call_later(0.02, self._wait_for_all)
        else:
            self._end()

    def _end(self) -> None:
        self.loop.running = False

    def _accept_link(self, events: int) -> None:
        try:
            descriptor, _ = self._listener._accept()  # type: ignore[attr-defined]
        except (BlockingIOError, InterruptedError, ConnectionError):
            return
        except OSError as error:  # out of descriptors: existing links go on, and this one is accepted later
            log_error(error)
            self.loop.forget(self._listener.fileno())
            self.loop.call_later(0.2, lambda: self.loop.watch(self._listener.fileno(), READ, self._accept_link))
            return
        self.links.add(GuestLink(self.loop, _socket.socket(fileno=descriptor), self._begin, self.links.discard))

    def _begin(self, channel: GuestChannel, request: dict[str, Any]) -> Operation:
        begin = OPERATIONS.get(request.get("op", ""))
        try:
            if begin is None:
                channel.fail("computer.bad-request", f"The guest has no operation {request.get('op')!r}")
                return Operation()
            return begin(self, channel, request) or Operation()
        except OperationError as error:
            channel.fail(error.code, str(error))
        except OSError as error:
            channel.fail("computer.refused", str(error))
        except MemoryError:
            channel.fail("computer.no-memory", "The computer has not enough memory for this operation")
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            channel.fail("computer.bad-request", f"{type(error).__name__}: {error}")
        return Operation()


def _nothing(number: int, frame: object) -> None:
    return


def _spawn(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> Operation:
    return GuestProcess(guest.children, channel, request)


def _files(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> Operation:
    from freehold.guest.files import FileBatch

    return FileBatch(guest.loop, channel, guest.children.workspace, request)


def _search(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> Operation:
    from freehold.guest.search import SearchOperation

    return SearchOperation(guest.children, channel, request)


def _forward(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> Operation:
    return GuestForward(guest.loop, channel, request)


def _listen(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> Operation:
    return GuestListener(guest.loop, channel, request, guest.reserved_ports)


def _processes(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> Operation:
    from freehold.guest.process_list import ProcessList

    return ProcessList(guest.children, channel)


def _listeners(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> Operation:
    from freehold.guest.process_list import ListeningSockets

    return ListeningSockets(guest.children, channel)


def _holders(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> Operation:
    from freehold.guest.process_list import SocketOwners

    return SocketOwners(guest.children, channel, request)


def _memory(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> Operation:
    from freehold.guest.process_list import MemoryMeasurement

    return MemoryMeasurement(guest.children, channel, request)


def _stats(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> None:
    from freehold.guest.process_list import measure_usage

    channel.finish({"ok": measure_usage()})


def _terminal(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> Operation:
    return guest.terminals.start(channel, request)


def _attach(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> Operation:
    return guest.terminals.attach(channel, request)


def _terminals(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> None:
    channel.finish({"ok": guest.terminals.rows()})


def _close_terminal(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> None:
    guest.terminals.find(request).close()
    channel.finish({"ok": True})


def _end_sessions(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> Operation:
    from freehold.guest.session_end import SessionEnd

    return SessionEnd(guest.children, channel)


def _shut_down(guest: Guest, channel: GuestChannel, request: dict[str, Any]) -> None:
    channel.finish({"ok": True})
    guest.loop.call_after_round(guest.shut_down)


OPERATIONS: dict[str, Begin] = {
    "spawn": _spawn,
    "files": _files,
    "search": _search,
    "forward": _forward,
    "listen": _listen,
    "processes": _processes,
    "listeners": _listeners,
    "holders": _holders,
    "memory": _memory,
    "stats": _stats,
    "terminal": _terminal,
    "terminal.attach": _attach,
    "terminal.close": _close_terminal,
    "terminals": _terminals,
    "isolate": lambda guest, channel, request: guest.isolates.execute(channel, request),
    "context.create": lambda guest, channel, request: guest.isolates.create(channel, request),
    "context.get": lambda guest, channel, request: guest.isolates.get(channel, request),
    "context.list": lambda guest, channel, request: guest.isolates.list(channel, request),
    "context.interrupt": lambda guest, channel, request: guest.isolates.interrupt(channel, request),
    "context.reset": lambda guest, channel, request: guest.isolates.reset(channel, request),
    "context.delete": lambda guest, channel, request: guest.isolates.delete(channel, request),
    "sessions.end": _end_sessions,
    "shutdown": _shut_down,
}


def main() -> None:
    arguments = sys.argv[1:]
    options = dict(zip(arguments[::2], arguments[1::2]))  # noqa: B905 - the guest also runs on Python 3.9
    os.umask(0o022)
    workspace = os.fsencode(options.get("--workspace", "/workspace"))
    held = [int(port) for port in options.get("--hold", "").split(",") if port]
    ends_with = int(options["--ends-with"]) if "--ends-with" in options else None
    control = int(options["--control"]) if "--control" in options else None
    folder = workspace if os.access(workspace, os.X_OK) else b"/"
    guest = Guest(int(options["--listen"]), folder, held, ends_with, control)
    guest.run()
