"""JSON-RPC, one message a line, with a program that is not trusted: ordered, bounded, and ended cleanly on an error.

This is not the protocol's Python SDK: that one needs 40 MB of memory, reorders updates whose handler waits, and drops
messages that it does not know. See docs/adr/0011.
"""

import asyncio
import json
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from freehold.errors import FreeholdError

log = logging.getLogger("freehold.agents")

MAX_LINE = 16 * 1024 * 1024
MAX_INVALID_LINES = 20
MAX_OPEN_REQUESTS = 64
MAX_DEPTH = 100
MAX_CONTAINERS = 100_000
"""Lists and objects in one message."""
FAIR_SHARE = 0.02
"""Seconds. After a message that took longer to read, as much time is left to all others."""

Json = dict[str, Any]
Later = Callable[[], Awaitable[Json]]
"""Produces the answer to a request; may take as long as it needs."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""A half of a character, escaped. No text that is stored can hold one alone."""

TraceLine = Callable[[str, bytes], None]
"""Receives each line with its direction, `in` or `out`."""


class Pipe(Protocol):
    """The program's streams. `read` returns b"" at the end."""

    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...


class AgentError(FreeholdError):
    """The agent failed: it ended, broke the protocol or answered a request with an error."""


class JsonRpcPeer:
    """One connection. Notifications are handled in order; nothing is read until the handler of each has returned.

    `on_pause` is awaited when everything received so far was handled, and before each request of the agent is
    answered; handlers that collect data store it there. `on_request` is also called in order. What it returns is
    awaited without holding up the rest.
    """

    def __init__(
        self,
        pipe: Pipe,
        *,
        on_notification: Callable[[str, Json], None],
        on_pause: Callable[[], Awaitable[None]],
        on_request: Callable[[str, Json], Later],
        trace: TraceLine | None = None,
    ) -> None:
        self._pipe = pipe
        self._on_notification = on_notification
        self._on_pause = on_pause
        self._on_request = on_request
        self._trace = trace
        self._next = 0
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._ended: AgentError | None = None
        self._invalid_lines = 0
        self._answering: set[asyncio.Task[None]] = set()
        self._writing = asyncio.Lock()
        self.messages_received = 0
        """Shows whether an agent still works or hangs."""

    async def request(self, method: str, params: Json) -> Json:
        """The agent's answer. Raises `AgentError` when it answers with an error or ends first."""
        if self._ended is not None:
            raise self._ended
        self._next += 1
        number = self._next
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def notify(self, method: str, params: Json) -> None:
        await self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def run(self) -> None:
        """Reads until the agent's output ends. Requests that still wait then fail with the reason."""
        failure = AgentError("agent.ended", "The agent ended")
        try:
            async with asyncio.TaskGroup() as group:
                await self._read(group)
                # The agent has ended and cannot receive answers.
                for task in list(self._answering):
                    task.cancel()
        except* AgentError as found:
            failure = _first(found)
        except* FreeholdError as lost:
            failure = AgentError("agent.ended", f"The connection to the agent was lost: {_first(lost).message}")
        finally:
            self._ended = failure
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(failure)
                    answer.exception()  # marks it as retrieved, for the case that its caller was cancelled

    async def _read(self, group: asyncio.TaskGroup) -> None:
        pending = bytearray()
        while data := await self._pipe.read():
            start = 0
            while (end := data.find(b"\n", start)) >= 0:
                pending += data[start:end]
                start = end + 1
                if pending.strip():
                    await self._handle_line(bytes(pending), group)
                pending.clear()
            await self._on_pause()
            pending += data[start:]
            if len(pending) > MAX_LINE:
                raise AgentError("agent.too-large", f"The agent sent a message of more than {MAX_LINE} bytes")

    async def _handle_line(self, line: bytes, group: asyncio.TaskGroup) -> None:
        if self._trace is not None:
            self._trace("in", line)
        began = time.monotonic()
        try:
            message = decode_json(line)
        except (ValueError, RecursionError):
            message = None
        self.messages_received += 1
        if not isinstance(message, dict):
            self._count_invalid_line()
            return
        method, number, params = message.get("method"), message.get("id"), message.get("params")
        arguments = params if isinstance(params, dict) else {}
        if isinstance(method, str) and number is None:
            self._on_notification(method, arguments)
            spent = time.monotonic() - began
            if spent > FAIR_SHARE:
                await asyncio.sleep(spent)
        elif isinstance(method, str):
            if len(self._answering) >= MAX_OPEN_REQUESTS:
                raise AgentError(
                    "agent.too-many", f"The agent has more than {MAX_OPEN_REQUESTS} requests open at the same time"
                )
            answer = self._on_request(method, arguments)
            await self._on_pause()
            task = group.create_task(self._answer(number, answer))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        elif isinstance(number, int) and not isinstance(number, bool) and number in self._waiting:
            await self._on_pause()
            self._settle(self._waiting[number], message)
        else:
            self._count_invalid_line()

    def _settle(self, answer: asyncio.Future[Json], message: Json) -> None:
        if answer.done():
            return
        error = message.get("error")
        if error is None:
            result = message.get("result")
            answer.set_result(result if isinstance(result, dict) else {})
            return
        words = f"The agent reported an error: {_error_text(error)}"
        answer.set_exception(
            AgentError("agent.refused", words, hint="Try again, or start a new session with this agent")
        )

    async def _answer(self, number: object, answer: Later) -> None:
        try:
            result = await answer()
        except FreeholdError as error:
            reply: Json = {"error": {"code": -32603, "message": error.message}}
        except Exception:
            # Ours, but brought about by what this one request says: the others go on.
            log.exception("A request of the agent could not be answered")
            reply = {"error": {"code": -32603, "message": "Freehold could not answer this request"}}
        else:
            reply = {"result": result}
        await self._send({"jsonrpc": "2.0", "id": number, **reply})

    def _count_invalid_line(self) -> None:
        self._invalid_lines += 1
        if self._invalid_lines > MAX_INVALID_LINES:
            raise AgentError(
                "agent.nonsense",
                f"The agent does not speak ACP: it wrote {self._invalid_lines} lines that are not ACP messages",
                hint="To see what it wrote: FREEHOLD_TRACE=FOLDER freehold up",
            )

    async def _send(self, message: Json) -> None:
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        if self._trace is not None:
            self._trace("out", line)
        async with self._writing:
            await self._pipe.write(line)


def decode_json(line: bytes) -> Any:
    """Raises `ValueError` or `RecursionError`. Bytes and escapes that are no characters are replaced."""
    message = json.loads(line.decode("utf-8", "replace"), parse_constant=_refuse_constant, parse_float=_read_float)
    if _SURROGATE.search(line):
        text = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
        message = json.loads(text.decode("utf-8", "replace"))
    if isinstance(message, dict) and _is_too_nested(line, message):
        raise ValueError("The message is nested too deeply")
    return message


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _read_float(text: str) -> float:
    """A number such as 1e999 is refused: written again it would be `Infinity`, which is not JSON."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("The number is too large")
    return number


def _is_too_nested(line: bytes, message: Json) -> bool:
    """Whether some code that reads or writes the message again could fail on its nesting."""
    if line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return False
    level: list[Any] = [message]
    left = MAX_CONTAINERS
    for _ in range(MAX_DEPTH):
        found: list[Any] = []
        for one in level:
            inside = one.values() if isinstance(one, dict) else one
            found += [each for each in inside if isinstance(each, (dict, list))]
        left -= len(found)
        if not found or left < 0:
            return left < 0
        level = found
    return True


def _error_text(error: object) -> str:
    if not isinstance(error, dict):
        return "no reason given"
    text = str(error.get("message") or "no reason given")
    detail = error.get("data")
    if isinstance(detail, dict) and isinstance(detail.get("details"), str):
        text = f"{text}: {detail['details']}"
    return "".join(char if char.isprintable() else " " for char in text)[:1000]


F = TypeVar("F", bound=FreeholdError)


def _first(group: BaseExceptionGroup[F]) -> F:
    for error in group.exceptions:
        return _first(error) if isinstance(error, BaseExceptionGroup) else error
    raise group
