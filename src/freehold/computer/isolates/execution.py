"""One execution: sends the code, receives what it writes, and reads how it ended."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from freehold.computer.isolates.limits import IsolateLimits
from freehold.computer.isolates.records import (
    ITEM,
    MAX_ITEMS,
    MAX_REQUEST,
    RecordReader,
    ResultItem,
    read_item,
    read_json,
)
from freehold.computer.library import reply
from freehold.computer.library.channel import Channel
from freehold.computer.library.frames import protocol_error
from freehold.computer.library.link import Link
from freehold.errors import FreeholdError

_MAX_OVERHEAD = 4 * 1024 * 1024
"""Bytes of headers that the records of one execution may have together."""
_MARGIN = 15.0
"""Seconds after an execution's time limit at which a guest that has not ended it counts as broken."""
_FOREVER = 1e8
MAX_WAIT = 3600.0
"""Seconds that an execution may wait for its turn while others run."""
_MAX_TEXT = 16 * 1024
_LARGE_MODULE = 512 * 1024
"""Bytes from which on a module is hashed in a thread."""

LimitName = Literal["memory", "processor", "wall_time", "output", "results", "file_size", "files"]
_LIMITS = ("memory", "processor", "wall_time", "output", "results", "file_size", "files")
_SIGNALS = 64


@dataclass(frozen=True)
class OutputChunk:
    """A piece of output, as it was written."""

    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True)
class CodeError:
    """The exception that ended the code."""

    name: str
    message: str
    traceback: str


@dataclass(frozen=True)
class CodeResult:
    """A finished execution.

    `exit_code` is 0, or 1 after an exception, or what the code gave to `exit`; it is negative for a signal. `limit` names
    the field of `IsolateLimits` that ended it. `items` are its value, what it displayed, and its result files.
    """

    stdout: bytes
    stderr: bytes
    items: tuple[ResultItem, ...]
    error: CodeError | None
    exit_code: int
    limit: LimitName | None
    duration: float
    processor: float

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and self.error is None and self.limit is None

    @property
    def text(self) -> str:
        """stdout as UTF-8; invalid bytes are replaced."""
        return self.stdout.decode(errors="replace")

    @property
    def item(self) -> ResultItem | None:
        """The value of the last expression, or None if it has none."""
        return next((item for item in self.items if item.role == "value"), None)

    @property
    def value(self) -> Any:
        """The value of the last expression: None, JSON, bytes, a `DataTable`, or text if it has no other form."""
        return None if self.item is None else self.item.value()

    @property
    def files(self) -> Mapping[str, bytes]:
        return {item.name: item.content for item in self.items if item.role == "file"}

    def check(self) -> "CodeResult":
        """This result if the code succeeded; else an error that says why not."""
        if self.limit is not None:
            raise FreeholdError(
                "computer.limit",
                f"The code reached the limit `{self.limit}` of its isolate after {self.duration:.1f} s",
                hint=f"Raise {self.limit} in IsolateLimits, or change the code",
            )
        if self.error is not None:
            shown = reply.escape_unprintable(f"{self.error.name}: {self.error.message}"[:500])
            raise FreeholdError("computer.code-failed", f"The code failed: {shown}")
        if self.exit_code:
            raise FreeholdError("computer.code-failed", f"The code ended with exit code {self.exit_code}")
        return self


Listener = Callable[[OutputChunk | ResultItem], None]
ExecutionPart = OutputChunk | ResultItem | CodeResult
"""What a stream gives: output and results as they arrive, then the result as a whole."""


class ExecutionDeadline:
    """After the time limit of its code a guest that has not ended it counts as broken. The limit begins with its turn."""

    def __init__(self, wall_time: float) -> None:
        self._patience = wall_time + _MARGIN if wall_time < _FOREVER else None
        self.timeout = asyncio.timeout(self._patience)
        self._waits: bool | None = None

    def postpone(self, waits: bool) -> None:
        """It waits for its turn, or its turn has come. A guest may say either once."""
        if waits == (self._waits is not None) or self._waits is False:
            raise protocol_error("an execution that waits for its turn twice")
        self._waits = waits
        seconds = MAX_WAIT if waits else self._patience
        if not self.timeout.expired():
            self.timeout.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)

    def explain(self) -> FreeholdError:
        if self._waits:
            return FreeholdError(
                "computer.busy",
                f"The code waited {MAX_WAIT / 60:.0f} minutes for its turn, because too much other code runs",
                hint="End code that is not needed, or try again later",
            )
        return FreeholdError("computer.unresponsive", "The computer did not end an execution at its time limit")


class ExecutionReceiver:
    """Collects the records of one execution, and tells `listener` of each as it arrives."""

    def __init__(self, limits: IsolateLimits, wall_time: float, listener: Listener | None) -> None:
        self.deadline = ExecutionDeadline(wall_time)
        self._reader = RecordReader(limits.output + limits.results + _MAX_OVERHEAD)
        self._output_left = limits.output
        self._listener = listener
        self._parts: tuple[list[bytes], list[bytes]] = ([], [])
        self._items: list[ResultItem] = []
        self._answer: dict[str, Any] | None = None
        self._error: FreeholdError | None = None
        self.channel: Channel | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data(self, stream: int, payload: memoryview) -> None:
        if stream:
            raise protocol_error("an isolate has one stream")
        for kind, content in self._reader.feed(payload):
            if kind == ITEM:
                if len(self._items) == MAX_ITEMS:
                    raise protocol_error("too many items of one execution")
                item = read_item(content)
                self._items.append(item)
                self._tell(item)
            else:
                self._output_left -= len(content)
                if self._output_left < 0:
                    raise protocol_error("more output of an isolate than was asked for")
                self._parts[kind].append(content)
                self._tell(OutputChunk("stderr" if kind else "stdout", content))
        if self.channel is not None:
            self.channel.grant(stream, len(payload))

    def _tell(self, what: OutputChunk | ResultItem) -> None:
        if self._listener is not None:
            self._listener(what)

    def end(self, stream: int) -> None:
        return

    def message(self, message: dict[str, Any]) -> None:
        waits = message.get("waits")
        if isinstance(waits, bool):
            self.deadline.postpone(waits)
            return
        self._error = self._error or reply.read_error(message)
        self._answer = message

    def closed(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def lost(self, error: FreeholdError) -> None:
        self._error = error
        self.closed()

    def result(self) -> CodeResult:
        if self._error is not None:
            raise self._error
        if self._answer is None:
            raise protocol_error("an execution without an answer")
        answer = self._answer
        said = read_said(answer.get("result"))
        limit = answer.get("limit") or said.get("limit")
        if limit is not None and limit not in _LIMITS:
            raise protocol_error("an unknown limit of isolates")
        refused = said.get("refused")
        if refused is not None:
            raise FreeholdError(
                "computer.isolate-refused",
                f"The isolate could not be sealed: {reply.escape_unprintable(str(refused)[:500])}",
                hint="Grant only paths that exist inside the computer, and the network only on Linux 6.7 or later",
            )
        error = read_code_error(said.get("error"))
        return CodeResult(
            stdout=b"".join(self._parts[0]),
            stderr=b"".join(self._parts[1]),
            items=tuple(self._items),
            error=error,
            exit_code=_read_exit_code(answer, said, error, limit),
            limit=limit,
            duration=reply.read_number(answer, "seconds"),
            processor=reply.read_number(answer, "processor"),
        )


def read_said(result: object) -> dict[str, Any]:
    """What the isolate itself says about its end; nothing if it died."""
    if result is None:
        return {}
    if not isinstance(result, str):
        raise protocol_error("the answer of an isolate is not text")
    said = read_json(result.encode(errors="replace"), "the answer of an isolate")
    if not isinstance(said, dict):
        raise protocol_error("the answer of an isolate is not an object")
    return said


def read_code_error(found: object) -> CodeError | None:
    if found is None:
        return None
    if not isinstance(found, list) or len(found) != 3 or not all(isinstance(part, str) for part in found):
        raise protocol_error("an exception without name, message and traceback")
    name, message, traceback = (part[:_MAX_TEXT] for part in found)
    return CodeError(name, message, traceback)


def _read_exit_code(answer: dict[str, Any], said: dict[str, Any], error: CodeError | None, limit: str | None) -> int:
    number = reply.read_optional_int(answer, "signal")
    if number is not None:
        return -(number % _SIGNALS)
    code = reply.read_optional_int(said if "result" in answer else answer, "exit")
    if code is not None:
        return code & 0xFF
    return 1 if error is not None or limit is not None else 0


async def run_execution(
    link: Link,
    request: dict[str, Any],
    inputs: Mapping[str, bytes],
    limits: IsolateLimits,
    wall_time: float,
    listener: Listener | None,
    module: bytes | None = None,
) -> CodeResult:
    """Cancelling this ends the execution: an isolate of its own is killed, one of a context is interrupted.

    A module is sent by its hash first, and whole only if the computer has not kept what was compiled from it.
    """
    size = sum(map(len, inputs.values())) + len(module or b"")
    if size > MAX_REQUEST:
        raise FreeholdError(
            "computer.too-large",
            f"The input files have {size} bytes together; {MAX_REQUEST} are the limit",
            hint="Write them with computer.files and grant their folder",
        )
    if inputs:
        request["inputs"] = [[name, len(content)] for name, content in inputs.items()]
    parts = list(inputs.values())
    if module is not None:
        is_large = len(module) > _LARGE_MODULE
        request["module"] = await asyncio.to_thread(_hash_module, module) if is_large else _hash_module(module)
        try:
            return await _run_once(link, request, parts, limits, wall_time, listener)
        except FreeholdError as error:
            if error.code != "computer.no-module":
                raise
        request["module_size"] = len(module)
        parts.insert(0, module)
    return await _run_once(link, request, parts, limits, wall_time, listener)


def _hash_module(module: bytes) -> str:
    return hashlib.sha256(module).hexdigest()


async def _run_once(
    link: Link,
    request: dict[str, Any],
    parts: Sequence[bytes],
    limits: IsolateLimits,
    wall_time: float,
    listener: Listener | None,
) -> CodeResult:
    receiver = ExecutionReceiver(limits, wall_time, listener)
    with link.use.hold():
        channel = receiver.channel = link.open({"op": "isolate", **request}, receiver)
        try:
            async with receiver.deadline.timeout:
                for content in parts:
                    await channel.write(content)
                await receiver.done
        except TimeoutError:
            raise receiver.deadline.explain() from None
        finally:
            channel.close()
    return receiver.result()


async def stream_execution(execute: Callable[..., Coroutine[Any, Any, CodeResult]]) -> AsyncGenerator[ExecutionPart]:
    """Run `execute(listener=…)` and give each part. Ending the iteration early cancels it, and waits until it is over."""
    arrived: asyncio.Queue[OutputChunk | ResultItem | None] = asyncio.Queue()
    running = asyncio.ensure_future(execute(listener=arrived.put_nowait))
    running.add_done_callback(lambda _: arrived.put_nowait(None))
    try:
        while (part := await arrived.get()) is not None:
            yield part
        yield await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
