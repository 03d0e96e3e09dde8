"""One zygote, seen from the guest: it forks when told to, and reports births and deaths."""

from __future__ import annotations

import _socket
import os
import time

from freehold.guest.isolates.isolate import Isolate
from freehold.guest.isolates.program import ZygoteProgram
from freehold.guest.isolates.records import BORN, STATUS
from freehold.guest.kernel import deque, signals
from freehold.guest.loop import READ
from freehold.guest.process_table import send_signal
from freehold.guest.spawn import SpawnRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource import struct_rusage

    from freehold.guest.process import ChildProcesses

SPARES = 2
"""One of them has built its walls already, for a request like the last one without grants; the other is for any."""
MAX_ASKED = 2
"""Forks that it is asked for at once, after its first; the others wait here. Each has three descriptors, which wait in a
socket until it is made. Files may hide in such descriptors, so the host stops all writes when 32 wait for long."""
REPLENISH_AFTER = 0.003
"""Seconds after an isolate was taken in which its successor is not forked: the taken one needs the processor now."""
MAX_LAST_WORDS = 2000
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NODE_NO_WARNINGS": "1", "UV_THREADPOOL_SIZE": "2"}
KEPT_VARIABLES = (
    b"PATH",
    b"LANG",
    b"HTTP_PROXY",
    b"HTTPS_PROXY",
    b"http_proxy",
    b"https_proxy",
    b"NO_PROXY",
    b"no_proxy",
)


class Zygote:
    """`group` is the domain that it is started in: empty for the owner, else one of sessions."""

    def __init__(self, children: ChildProcesses, language: str, group: str, packages: tuple[str, ...]) -> None:
        program = ZygoteProgram(language, packages)
        self.loop = children.loop
        self.language = language
        self.alive = True
        self.used_at = time.monotonic()
        self._unborn: deque[Isolate] = deque()
        """The first `_asked` of them it has been asked for."""
        self._asked = 0
        self._most_asked = 1
        self._living: dict[int, Isolate] = {}
        self._spares: deque[Isolate] = deque()
        self._last_words = b""
        self._pending_replenish = False
        self._usual_limits = b""
        mine, its = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        self._control = mine
        self._stderr, stderr = os.pipe()
        addon = children.null
        try:
            if program.addon is not None:
                addon = _nameless_file(program.addon)
            environment = {name: value for name, value in children.environment.items() if name in KEPT_VARIABLES}
            message = {
                "argv": program.command,
                "cwd": "/",
                "env": {**ENVIRONMENT, **program.environment},
                "apart": group,
            }
            request = SpawnRequest(message, environment, children.workspace, children.new_marker())
            self._pid = children.start(request, (its.fileno(), addon, stderr))
        except BaseException:
            mine.close()
            os.close(self._stderr)
            raise
        finally:
            its.close()
            os.close(stderr)
            if addon != children.null:
                os.close(addon)
        children.adopt(self._pid, self._exited)
        try:
            for packet in program.packets:
                mine.send(packet)
        except ConnectionError:
            pass  # it has ended already: whoever takes an isolate is told why
        mine.setblocking(False)
        os.set_blocking(self._stderr, False)
        self.loop.watch(mine.fileno(), READ, self._told)
        self.loop.watch(self._stderr, READ, self._hear)

    @property
    def is_idle(self) -> bool:
        """Whether none of its isolates is in use."""
        return len(self._living) + len(self._unborn) == len(self._spares)

    def take(self, limits: bytes) -> Isolate:
        """An isolate that nobody has used: a parked one, or one that is being forked.

        `limits` are those of a request that needs nothing else to be sealed; empty for any other.
        """
        self.used_at = time.monotonic()
        if self.language != "javascript":  # its zygote hears of no limits
            self._usual_limits = limits or self._usual_limits
        isolate = self._take_spare(limits) or self._take_spare(b"") or self._fork()
        if not self._pending_replenish:
            self._pending_replenish = True
            self.loop.call_later(REPLENISH_AFTER, self._replenish)
        return isolate

    def _take_spare(self, limits: bytes) -> Isolate | None:
        for spare in self._spares:
            if spare.sealed_for == limits:
                self._spares.remove(spare)
                return spare
        return None

    def end(self) -> None:
        """Kill it and all its isolates. Idempotent."""
        if self.alive:
            send_signal(self._pid, signals.SIGKILL)
            self._lose()

    def forget(self, isolate: Isolate) -> None:
        if isolate in self._spares:
            self._spares.remove(isolate)

    def explain_end(self) -> str:
        """Its error, if it has named one: what Node writes last is its own version."""
        words = self._last_words.decode("utf-8", "replace").strip().splitlines()
        errors = [line for line in words if "Error: " in line]
        return (errors or words or ["it said nothing"])[-1]

    def _fork(self, limits: bytes = b"") -> Isolate:
        isolate = Isolate(self, limits)
        self._unborn.append(isolate)
        self._ask()
        return isolate

    def _ask(self) -> None:
        while self._asked < min(self._most_asked, len(self._unborn)):
            isolate = self._unborn[self._asked]
            rights = b"".join(one.to_bytes(4, "little") for one in isolate.descriptors_of_child())
            message = b"f" + isolate.sealed_for
            try:
                self._control.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
                self._asked += 1
            except ConnectionError:
                self._asked += 1  # it has ended: `_lose` tells the user of this isolate why
            except OSError:
                # Its queue is full, or descriptors are short: this isolate never lives, and its user is told.
                del self._unborn[self._asked]
                self._refuse(isolate)
            finally:
                isolate.close_child_ends()

    def _refuse(self, isolate: Isolate) -> None:
        def end() -> None:
            self.forget(isolate)
            isolate.ended(None, 0, 0)

        self.loop.call_after_round(end)

    def _pop_unborn(self) -> Isolate:
        self._asked -= 1
        self._most_asked = MAX_ASKED
        isolate = self._unborn.popleft()
        self._ask()
        return isolate

    def _replenish(self) -> None:
        self._pending_replenish = False
        if not self.alive:
            return
        sealed_for = [spare.sealed_for for spare in self._spares]
        for spare in list(self._spares):
            if spare.sealed_for not in (b"", self._usual_limits):
                self._spares.remove(spare)  # nobody sends such requests any more
                spare.kill()
        if len(self._spares) < SPARES:
            limits = b"" if self._usual_limits in sealed_for else self._usual_limits
            self._spares.append(self._fork(limits))
            if len(self._spares) < SPARES:
                self._pending_replenish = True
                self.loop.call_later(REPLENISH_AFTER, self._replenish)

    def _told(self, events: int) -> None:
        while self.alive:
            try:
                report = self._control.recv(64)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                report = b""
            if len(report) != STATUS.size:
                self.end()
                return
            pid, status, processor, memory = STATUS.unpack(report)
            if pid == 0:
                isolate = self._pop_unborn()
                self.forget(isolate)
                isolate.ended(None, 0, 0)
            elif status == BORN:
                isolate = self._pop_unborn()
                self._living[pid] = isolate
                isolate.born(pid)
            elif pid in self._living:
                isolate = self._living.pop(pid)
                self.forget(isolate)
                isolate.ended(status, processor, memory)

    def _hear(self, events: int) -> None:
        try:
            said = os.read(self._stderr, 65536)
        except (BlockingIOError, InterruptedError):
            return
        self._last_words = (self._last_words + said)[-MAX_LAST_WORDS:]
        if not said:
            self.loop.forget(self._stderr)

    def _exited(self, status: int, usage: struct_rusage) -> None:
        self._lose()

    def _lose(self) -> None:
        if not self.alive:
            return
        self.alive = False
        self._hear(0)
        for descriptor in (self._control.fileno(), self._stderr):
            self.loop.forget(descriptor)
        self._control.close()
        os.close(self._stderr)
        self._spares.clear()
        while len(self._unborn) > self._asked:
            isolate = self._unborn.pop()
            isolate.close_child_ends()
            isolate.ended(None, 0, 0)
        for isolate in [*self._living.values(), *self._unborn]:
            isolate.kill()
            isolate.ended(None, 0, 0)


def _nameless_file(content: bytes) -> int:
    """A descriptor of a file that has no name and that nobody can write any more."""
    writer = os.open("/tmp", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o500)  # noqa: S108
    try:
        while content:
            content = content[os.write(writer, content) :]
        return os.open(f"/proc/self/fd/{writer}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(writer)
