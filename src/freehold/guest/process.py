"""Processes: started by a channel, streamed on it and killed with it; and the reaping of all dead processes."""

from __future__ import annotations

import time

from freehold.guest.kernel import os
from freehold.guest.landlock import LandlockDomains
from freehold.guest.link import Operation
from freehold.guest.loop import READ
from freehold.guest.process_table import kill_tree, send_signal
from freehold.guest.spawn import OperationError, SpawnRequest, start_child
from freehold.guest.streams import StreamSink, StreamSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from resource import struct_rusage
    from typing import Any

    from freehold.guest.link import GuestChannel
    from freehold.guest.loop import Loop, Timer

LINGER = 0.1
"""Seconds in which output is still read after a command has ended, if a background process holds its pipes."""


class ChildProcesses:
    """Every child by pid, and the reaping of all dead processes. `ended` is a signalfd for SIGCHLD."""

    def __init__(self, loop: Loop, workspace: bytes, ended: int) -> None:
        self.loop = loop
        self._ended = ended
        self.workspace = workspace
        self.environment = dict(os.environb)
        self.null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self._children: dict[int, Callable[[int, struct_rusage], None]] = {}
        self._count = 0
        self._nonce = os.urandom(4).hex()
        self.domains = LandlockDomains()
        loop.watch(ended, READ, self._child_ended)

    def new_marker(self) -> bytes:
        """A marker that is unique in this computer."""
        self._count += 1
        return f"{self._nonce}-{self._count}".encode()

    def adopt(self, pid: int, ended: Callable[[int, struct_rusage], None]) -> None:
        self._children[pid] = ended

    def is_child(self, pid: int) -> bool:
        return pid in self._children

    def start(self, request: SpawnRequest, streams: tuple[int, int, int], terminal: bool = False) -> int:
        """As `start_child`. SIGCHLD is not blocked meanwhile and may be missed, so dead processes are reaped afterwards."""
        self.loop.call_after_round(self.reap)
        return self.domains.run_in(request.apart, lambda: start_child(request, *streams, terminal=terminal))

    def _child_ended(self, events: int) -> None:
        os.read(self._ended, 4096)
        self.reap()

    def reap(self) -> None:
        """Reap dead processes, including orphans."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            ended = self._children.pop(pid, None)
            if ended is not None:
                ended(status, usage)


class GuestProcess(Operation):
    """One command with pipes. When the channel ends, the command and everything it started are killed."""

    def __init__(self, nursery: ChildProcesses, channel: GuestChannel, message: dict[str, Any]) -> None:
        self._nursery = nursery
        self._channel = channel
        self._identity = nursery.new_marker()
        self._status: int | None = None
        self._usage: struct_rusage | None = None
        self._reason = ""
        self._timer: Timer | None = None
        self._sources: list[StreamSource] = []
        self._sink: StreamSink | None = None
        self._quiet = bool(message.get("quiet"))
        linger, timeout, capture = message.get("linger", LINGER), message.get("timeout"), message.get("capture")
        # Read every field before the process starts: nothing would end one whose request is refused afterwards.
        self._linger = None if linger is None else max(0.0, float(linger))
        time_limit = None if timeout is None else max(0.0, float(timeout))
        capture = None if capture is None else max(0, int(capture))
        self._began = time.monotonic()
        self.pid = self._start(message, capture)
        nursery.adopt(self.pid, self._exited)
        if not self._quiet:
            channel.send_message({"pid": self.pid})
        if time_limit is not None:
            self._timer = nursery.loop.call_later(time_limit, self._late)

    def _start(self, message: dict[str, Any], capture: int | None) -> int:
        nursery, loop = self._nursery, self._nursery.loop
        request = SpawnRequest(message, nursery.environment, nursery.workspace, self._identity)
        pipes: list[int] = []
        try:
            inward = (nursery.null, -1)
            if message.get("stdin"):
                inward = os.pipe()
                pipes += inward
            outward = os.pipe()
            pipes += outward
            aside = outward
            if not message.get("merge"):
                aside = os.pipe()
                pipes += aside
            pid = nursery.start(request, (inward[0], outward[1], aside[1]))
        except OSError as error:
            for descriptor in pipes:
                os.close(descriptor)
            raise OperationError(
                "computer.cannot-start", f"The computer cannot start another process: {error.strerror}"
            ) from None
        except BaseException:
            for descriptor in pipes:
                os.close(descriptor)
            raise
        os.close(outward[1])
        self._sources.append(StreamSource(loop, self._channel, 0, outward[0], self._settle, capture, self._quiet))
        if aside is not outward:
            os.close(aside[1])
            self._sources.append(StreamSource(loop, self._channel, 1, aside[0], self._settle, capture, self._quiet))
        if inward[1] >= 0:
            os.close(inward[0])
            self._sink = StreamSink(loop, self._channel, 0, inward[1])
        return pid

    def data(self, stream: int, payload: bytes) -> None:
        if self._sink is None:
            self._channel.grant(stream, len(payload))
        else:
            self._sink.write(payload)

    def end(self, stream: int) -> None:
        if self._sink is not None:
            self._sink.end()

    def credited(self) -> None:
        for source in self._sources:
            source.resume()

    def message(self, message: dict[str, Any]) -> None:
        number = message.get("signal")
        if isinstance(number, int) and 0 < number < 65 and self._status is None:
            if message.get("group", True):
                try:
                    os.killpg(self.pid, number)
                except OSError:
                    return
            else:
                send_signal(self.pid, number)
        elif message.get("kill"):
            kill_tree(self.pid, self._identity)

    def closed(self) -> None:
        """Kill the command if it still runs. After it has ended, its background processes keep running."""
        if self._status is None:
            kill_tree(self.pid, self._identity)
        self._release()

    def _late(self) -> None:
        self._reason = "timeout"
        kill_tree(self.pid, self._identity)

    def _exited(self, status: int, usage: struct_rusage) -> None:
        self._status = status
        self._usage = usage
        if self._timer is not None:
            self._timer.cancel()
        if not self._over() and self._linger is not None:
            self._timer = self._nursery.loop.call_later(self._linger, self._abandon)

    def _abandon(self) -> None:
        drained = [source.drain() for source in self._sources]
        if not all(drained):
            self._timer = self._nursery.loop.call_later(LINGER, self._abandon)
            return
        for source in self._sources:
            source.close()
        self._over()

    def _settle(self) -> None:
        self._over()

    def _over(self) -> bool:
        """Whether the command has ended and its output is complete; sends the last message then."""
        if self._status is None or any(source.live for source in self._sources):
            return False
        usage = self._usage
        self._channel.finish(
            {
                "exit": os.WEXITSTATUS(self._status) if os.WIFEXITED(self._status) else None,
                "signal": os.WTERMSIG(self._status) if os.WIFSIGNALED(self._status) else None,
                "duration": time.monotonic() - self._began,
                "cpu": usage.ru_utime + usage.ru_stime if usage else 0.0,
                "memory": usage.ru_maxrss * 1024 if usage else 0,
                "reason": self._reason,
                "dropped": [source.dropped for source in self._sources],
            }
        )
        self._release()
        return True

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for source in self._sources:
            source.close()
        if self._sink is not None:
            self._sink.close()
