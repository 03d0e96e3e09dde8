"""JSON-RPC over lines with a program that must not be trusted: ordered, bounded, and ended cleanly when it errs.

Our own and not the protocol's Python SDK: that one costs 40 MB, reorders updates whose handler waits, and drops
what it does not know. See docs/adr/0011.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from freehold.errors import FreeholdError

MAX_LINE = 16 * 1024 * 1024
MAX_NONSENSE = 20
MAX_ASKED = 64

Json = dict[str, Any]
Later = Callable[[], Awaitable[Json]]
Trace = Callable[[str, bytes], None]


class Pipe(Protocol):
    """The program's streams. `read` gives b"" at the end."""

    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...


class AgentFault(FreeholdError):
    """The agent broke the conversation: it died, spoke nonsense or refused a request."""


class Peer:
    """One conversation. Notifications are handed over in order, and nothing more is read until each is dealt with.

    `paused` is awaited whenever all that has arrived is handed over, and before each request of the agent's is
    answered: whoever gathers puts down there what it has. `asked` is called in order, too; what it returns may take
    its time.
    """

    def __init__(
        self,
        pipe: Pipe,
        *,
        notified: Callable[[str, Json], None],
        paused: Callable[[], Awaitable[None]],
        asked: Callable[[str, Json], Later],
        trace: Trace | None = None,
    ) -> None:
        self._pipe = pipe
        self._notified = notified
        self._paused = paused
        self._asked = asked
        self._trace = trace
        self._next = 0
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._ended: AgentFault | None = None
        self._nonsense = 0
        self._questions: set[asyncio.Task[None]] = set()
        self._writing = asyncio.Lock()
        self.heard = 0
        """Messages so far: tells an agent that works from one that hangs."""

    async def request(self, method: str, params: Json) -> Json:
        """The agent's answer. Raises `AgentFault` when it answers with an error or ends first."""
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
        """Read until the agent's output ends; then everybody who still waits is told why."""
        fault = AgentFault("agent.ended", "The agent ended")
        try:
            async with asyncio.TaskGroup() as group:
                await self._read(group)
                # Questions of an agent that is gone need no answer.
                for task in list(self._questions):
                    task.cancel()
        except* AgentFault as found:
            fault = _first(found)
        except* FreeholdError as lost:
            fault = AgentFault("agent.ended", f"The agent was lost: {_first(lost).message}")
        finally:
            self._ended = fault
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(fault)
                    answer.exception()  # whoever waits sees it; nobody has to

    async def _read(self, group: asyncio.TaskGroup) -> None:
        pending = bytearray()
        while data := await self._pipe.read():
            start = 0
            while (end := data.find(b"\n", start)) >= 0:
                pending += data[start:end]
                start = end + 1
                if pending.strip():
                    await self._take(bytes(pending), group)
                pending.clear()
            await self._paused()
            pending += data[start:]
            if len(pending) > MAX_LINE:
                raise AgentFault("agent.too-large", f"The agent sent a message of more than {MAX_LINE} bytes")

    async def _take(self, line: bytes, group: asyncio.TaskGroup) -> None:
        if self._trace is not None:
            self._trace("in", line)
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        self.heard += 1
        if not isinstance(message, dict):
            self._count_nonsense()
            return
        method, number, params = message.get("method"), message.get("id"), message.get("params")
        given = params if isinstance(params, dict) else {}
        if isinstance(method, str) and number is None:
            self._notified(method, given)
        elif isinstance(method, str):
            if len(self._questions) >= MAX_ASKED:
                raise AgentFault("agent.too-many", f"The agent asks more than {MAX_ASKED} questions at once")
            answer = self._asked(method, given)
            await self._paused()
            task = group.create_task(self._answer(number, answer))
            self._questions.add(task)
            task.add_done_callback(self._questions.discard)
        elif isinstance(number, int) and not isinstance(number, bool) and number in self._waiting:
            await self._paused()
            self._settle(self._waiting[number], message)
        else:
            self._count_nonsense()

    def _settle(self, answer: asyncio.Future[Json], message: Json) -> None:
        if answer.done():
            return
        error = message.get("error")
        if error is None:
            result = message.get("result")
            answer.set_result(result if isinstance(result, dict) else {})
            return
        answer.set_exception(AgentFault("agent.refused", f"The agent could not go on: {_words(error)}"))

    async def _answer(self, number: object, answer: Later) -> None:
        try:
            result = await answer()
        except FreeholdError as error:
            reply: Json = {"error": {"code": -32603, "message": error.message}}
        else:
            reply = {"result": result}
        await self._send({"jsonrpc": "2.0", "id": number, **reply})

    def _count_nonsense(self) -> None:
        self._nonsense += 1
        if self._nonsense > MAX_NONSENSE:
            raise AgentFault(
                "agent.nonsense",
                "The agent does not speak ACP: it writes lines that are none of the protocol's",
                hint="See what it wrote with FREEHOLD_TRACE=FOLDER freehold up",
            )

    async def _send(self, message: Json) -> None:
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        if self._trace is not None:
            self._trace("out", line)
        async with self._writing:
            await self._pipe.write(line)


def _words(error: object) -> str:
    if not isinstance(error, dict):
        return "without a reason"
    words = str(error.get("message") or "without a reason")
    detail = error.get("data")
    if isinstance(detail, dict) and isinstance(detail.get("details"), str):
        words = f"{words}: {detail['details']}"
    return "".join(char if char.isprintable() else " " for char in words)[:1000]


F = TypeVar("F", bound=FreeholdError)


def _first(group: BaseExceptionGroup[F]) -> F:
    for error in group.exceptions:
        return _first(error) if isinstance(error, BaseExceptionGroup) else error
    raise group
