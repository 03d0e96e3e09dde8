"""One execution on one channel: in an isolate of its own, or in that of a context."""

from __future__ import annotations

import os
import time

from freehold.guest.codec import encode_message
from freehold.guest.isolates.folder import IsolateFolder
from freehold.guest.isolates.isolate import IsolateUser
from freehold.guest.isolates.module_store import ModuleDraft
from freehold.guest.isolates.records import MAX_ITEMS, MAX_REQUEST, RECORD
from freehold.guest.link import Operation
from freehold.guest.spawn import OperationError, to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from freehold.guest.isolates.context import IsolateContext
    from freehold.guest.isolates.isolate import Isolate
    from freehold.guest.isolates.service import Isolates
    from freehold.guest.link import GuestChannel

PASSED_ON = ("code", "name", "arguments", "outputs", "typescript", "call")
"""What the isolate is told of a request as it is."""
DIGEST = 64
"""Characters of a SHA-256 hash."""
GRACE = 2.0
"""Seconds between the interrupt and the kill of an execution in a context."""
SIGXFSZ, SIGSEGV, SIGABRT, SIGTRAP, SIGILL, SIGBUS = 25, 11, 6, 5, 4, 7
NEAR_LIMIT = 0.75
"""An isolate that crashes with this part of its memory in use has met its limit: V8 crashes then instead of failing."""


class ExecutionLimits:
    """Bytes, seconds and counts; every one is checked before anything starts."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.memory = _count(message, "memory", 1 << 20, 1 << 40)
        self.processor = _seconds(message, "processor")
        self.wall_time = _seconds(message, "wall_time")
        self.output = _count(message, "output", 0, 1 << 40)
        self.results = _count(message, "results", 0, 1 << 40)
        self.file_size = _count(message, "file_size", 0, 1 << 40)
        self.open_files = _count(message, "open_files", 8, 1 << 16)

    def describe(self) -> dict[str, int]:
        """What the isolate itself must enforce."""
        return {"memory": self.memory, "file_size": self.file_size, "open_files": self.open_files}


def _count(message: dict[str, Any], name: str, least: int, most: int) -> int:
    value = message[name]
    if type(value) is not int or not least <= value <= most:
        raise OperationError("computer.bad-request", f"{name} must be a number from {least} to {most}, not {value!r}")
    return value


def _seconds(message: dict[str, Any], name: str) -> float:
    value = message[name]
    if type(value) not in (int, float) or not 0 < value < 1e9:
        raise OperationError("computer.bad-request", f"{name} must be a number of seconds, not {value!r}")
    return float(value)


def read_grants(message: dict[str, Any]) -> list[list[str]]:
    grants = message.get("files") or []
    for path, mode in grants:
        if not to_bytes(path).startswith(b"/") or mode not in ("r", "rw"):
            raise OperationError("computer.bad-request", f"{path!r} must be an absolute path with the mode r or rw")
    return [[path, mode] for path, mode in grants]


class Execution(Operation, IsolateUser):
    """Reads its input files from the channel, runs, and answers. Closing the channel cancels it."""

    def __init__(self, isolates: Isolates, channel: GuestChannel, message: dict[str, Any]) -> None:
        self._isolates = isolates
        self._channel = channel
        self._message = message
        self.context: IsolateContext | None = None
        name = message.get("context")
        if name is not None:
            self.context = isolates.find_context(name)
            self.context.check_free()
        self.limits = ExecutionLimits(message["limits"]) if self.context is None else self.context.limits
        self._wall_time = _seconds(message, "wall_time") if "wall_time" in message else self.limits.wall_time
        if not isinstance(message["code"], str):
            raise OperationError("computer.bad-request", "`code` must be a string")
        self._inputs = [(_file_name(name), int(size)) for name, size in message.get("inputs") or []]
        self._digest: str | None = None
        self._module_size = self._read_module(message)
        self._draft: ModuleDraft | None = None
        self._keeps_module = False
        self._missing = self._module_size + sum(size for _, size in self._inputs)
        if any(size < 0 for _, size in self._inputs) or self._missing > MAX_REQUEST:
            raise OperationError("computer.too-large", f"Input files may have {MAX_REQUEST} bytes together")
        self._grants = read_grants(message) if self.context is None else self.context.grants
        self._parts: list[bytes] = []
        self._folder: IsolateFolder | None = None
        self._isolate: Isolate | None = None
        self._limit: str | None = None
        self._output_left = self.limits.output
        self._results_left = self.limits.results
        self._items_left = MAX_ITEMS
        self._discards = False
        self._waits = False
        self._began = 0.0
        self._processor_before = 0.0
        self._kill_at: float | None = None
        if self.context is not None:
            self.context.execution = self
        if not self._missing:
            isolates.queue(self)

    def _read_module(self, message: dict[str, Any]) -> int:
        """The bytes of the module that will come before the input files: none if it is kept here already."""
        digest, size = message.get("module"), message.get("module_size", 0)
        if digest is None:
            return 0
        language = message["language"] if self.context is None else self.context.language
        if language != "wasm" or not isinstance(digest, str) or len(digest) != DIGEST or type(size) is not int:
            raise OperationError("computer.bad-request", "A module needs its hash, its size and the language wasm")
        if self._isolates.modules.find(digest) is None and size <= 0:
            raise OperationError("computer.no-module", "The module is not kept in this computer; send it")
        self._digest = digest
        return max(0, size)

    def data(self, stream: int, payload: bytes) -> None:
        self._missing -= len(payload)
        if self._missing < 0 or self._isolate is not None:
            self._channel.fail("computer.bad-request", "More input than was announced")
            self.closed()
            return
        self._parts.append(payload)
        self._channel.grant(stream, len(payload))
        if not self._missing:
            self._isolates.queue(self)

    def wait(self) -> None:
        """Others have their turn first. The host is told, because its time limit begins when the code does."""
        self._waits = True
        self._channel.send_message({"waits": True})

    def start(self) -> None:
        """Called when it is this execution's turn."""
        if self._waits:
            self._channel.send_message({"waits": False})
        file = self._find_module()
        if self.context is not None:
            self._isolate, folder = self.context.isolate, self.context.folder
        else:
            if self._inputs or self._message.get("outputs"):
                self._folder = IsolateFolder(self._isolates.loop)
            folder = self._folder
            needs_more = folder is not None or self._grants or self._message.get("network")
            limits = b"" if needs_more else encode_message(self.limits.describe())
            self._isolate = self._isolates.take(
                self._message, limits
            )  # last: what fails after it would leave it behind
        self._began = time.monotonic()
        self._processor_before = self._isolate.processor_time()
        self._isolate.begin(self, self._describe_request(folder), b"".join(self._parts), file)
        self._parts.clear()

    def _find_module(self) -> int | None:
        """The file of its compiled module, if it is kept."""
        if self._digest is None:
            return None
        if self._module_size:
            # Only an isolate that has run nothing else can be trusted with what is kept for others.
            self._keeps_module = self.context is None or not self.context.count
            return None
        file = self._isolates.modules.find(self._digest)
        if file is None:
            raise OperationError("computer.no-module", "The module is not kept in this computer any more; send it")
        return file

    def refuse(self, error: Exception) -> None:
        """It could not be started."""
        code = error.code if isinstance(error, OperationError) else "computer.cannot-start"
        self._channel.fail(code, str(error))
        if self.context is not None:
            self.context.execution = None
        if self._folder is not None:
            self._folder.remove()

    def _describe_request(self, folder: IsolateFolder | None) -> bytes:
        message = self._message
        request = {name: message[name] for name in PASSED_ON if message.get(name) is not None}
        if self._module_size:
            request["module"] = self._module_size
        if self._keeps_module:
            request["store"] = True
        request["limits"] = self.limits.describe()
        request["keep"] = self.context is not None
        if self._inputs:
            request["inputs"] = self._inputs
        grants = self._grants
        if folder is not None:
            path = os.fsdecode(folder.path)
            request["folder"] = path
            grants = [*grants, [path, "rw"]]
        if grants:
            request["grants"] = grants
        if message.get("network") if self.context is None else self.context.network:
            request["network"] = True
        return encode_message(request)

    def check(self, now: float) -> None:
        """Called often while it runs: are its limits met?"""
        isolate = self._isolate
        if isolate is None:
            return
        if self._kill_at is not None:
            if now >= self._kill_at:
                isolate.kill()
        elif now - self._began > self._wall_time:
            self.stop("wall_time")
        elif isolate.processor_time() - self._processor_before > self.limits.processor:
            self.stop("processor")
        else:
            folder = self._folder if self.context is None else self.context.folder
            if folder is not None and folder.measure(self.limits.memory, self._began) > self.limits.memory:
                self.stop("files")

    def stop(self, limit: str | None) -> None:
        """End it: at once, or in a context first by an interrupt, so that its variables survive."""
        isolate = self._isolate
        if isolate is None or self._kill_at is not None:
            return
        self._limit = limit
        self._discards = True
        if self.context is None or limit == "files":
            self._kill_at = 0.0
            isolate.kill()
        else:
            self._kill_at = time.monotonic() + GRACE
            isolate.interrupt()
        isolate.resume()

    def room(self) -> int:
        return 1 << 20 if self._discards or not self._channel.is_open else self._channel.room(0) - RECORD.size

    def credited(self) -> None:
        if self._isolate is not None:
            self._isolate.resume()

    def output(self, stream: int, data: bytes) -> None:
        if self._discards:
            return
        if len(data) > self._output_left:
            data = data[: self._output_left]
            self.stop("output")
        self._output_left -= len(data)
        if data:
            self._channel.send(0, RECORD.pack(stream, len(data)) + data)

    def item(self, data: bytes, size: int | None) -> None:
        if size is not None:
            self._results_left -= size
            self._items_left -= 1
            if self._results_left < 0 or self._items_left < 0:
                self.stop("results")
        if not self._discards:
            self._channel.send(0, data)

    def module(self, data: bytes, size: int | None) -> None:
        if size is None:
            if self._draft is not None:
                self._draft.write(data)
        elif self._keeps_module and self._digest is not None:
            self._keeps_module = False
            self._draft = ModuleDraft(self._isolates.modules, self._digest, size)
        elif self._isolate is not None:
            self._isolate.kill()  # nobody asked for it

    def answered(self, result: bytes) -> None:
        self._channel.finish({"result": result.decode("utf-8", "replace"), "limit": self._limit, **self._measure()})
        self._over()

    def died(self, status: int | None, processor: int, memory: int) -> None:
        number = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None
        if self._limit is None and number == SIGXFSZ:
            self._limit = "file_size"
        crashed = number in (SIGSEGV, SIGABRT, SIGTRAP, SIGILL, SIGBUS)
        if self._limit is None and crashed and memory >= NEAR_LIMIT * self.limits.memory:
            self._limit = "memory"
        if status is None and self._isolate is not None:
            zygote = self._isolate.zygote
            reason = "it could not fork" if zygote.alive else zygote.explain_end()
            self._channel.fail(
                "computer.isolate-failed", f"The {zygote.language} interpreter for isolates ended: {reason}"
            )
        else:
            self._channel.finish(
                {"signal": number, "exit": code, "limit": self._limit, **self._measure(), "memory": memory}
            )
        self._over()

    def _measure(self) -> dict[str, Any]:
        used = 0.0 if self._isolate is None else self._isolate.processor_time() - self._processor_before
        return {"seconds": time.monotonic() - self._began, "processor": max(0.0, used)}

    def closed(self) -> None:
        """Cancelled by the host, or the link was lost."""
        if self._isolate is None:
            self._isolates.unqueue(self)
            if self.context is not None:
                self.context.execution = None
        else:
            self.stop(None)

    def _over(self) -> None:
        isolate, self._isolate = self._isolate, None
        if self.context is not None:
            self.context.finished()
        elif isolate is not None:
            self._isolates.loop.call_after_round(isolate.kill)  # the answer goes first
        if self._folder is not None:
            self._folder.remove()
        if self._draft is not None:
            self._draft.close()
        self._isolates.finished(self)


def _file_name(name: str) -> str:
    """Input files have plain names: they are written to the isolate's own folder."""
    if to_bytes(name) in (b"", b".", b"..") or "/" in name:
        raise OperationError("computer.bad-request", f"{name!r} is not the name of a file")
    return name
