"""Contexts: isolates that keep their variables, like a notebook."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from freehold.computer.isolates.code import describe_code, read_code_file, read_module
from freehold.computer.isolates.execution import CodeResult, ExecutionPart, Listener, run_execution, stream_execution
from freehold.computer.isolates.limits import Grants, IsolateLimits, describe_isolate
from freehold.computer.isolates.records import MAX_ITEM
from freehold.computer.library import reply
from freehold.computer.library.connection import ComputerConnection
from freehold.computer.library.files import Files
from freehold.computer.library.frames import protocol_error
from freehold.computer.library.request import send_request

ContextState = Literal["ready", "busy", "ended"]
_STATES = ("ready", "busy", "ended")
DEFAULT_KEEP = 3600.0


@dataclass(frozen=True)
class ContextInfo:
    """`ended`: its isolate has died and its variables are gone; `reset` gives it a new one."""

    id: str
    language: str
    label: str
    state: ContextState
    created: float
    executions: int
    limits: IsolateLimits
    folder: str


def read_context(row: object) -> ContextInfo:
    if not isinstance(row, dict):
        raise protocol_error("a context that is not an object")
    state = reply.read_text(row, "state")
    if state not in _STATES:
        raise protocol_error("a context in an unknown state")
    return ContextInfo(
        id=reply.read_text(row, "id")[:64],
        language=reply.read_text(row, "language")[:64],
        label=reply.escape_unprintable(reply.read_text(row, "label")[:200]),
        state=state,  # type: ignore[arg-type]
        created=reply.read_number(row, "created"),
        executions=reply.read_int(row, "executions"),
        limits=_read_limits(row.get("limits")),
        folder=reply.read_text(row, "folder")[:4096],
    )


def _read_limits(row: object) -> IsolateLimits:
    """The limits that it was created with. What the host would have to keep of its output is bounded here."""
    if not isinstance(row, dict):
        raise protocol_error("a context without limits")
    return IsolateLimits(
        memory=reply.read_int(row, "memory"),
        processor=reply.read_number(row, "processor"),
        wall_time=reply.read_number(row, "wall_time"),
        output=min(max(0, reply.read_int(row, "output")), MAX_ITEM),
        results=min(max(0, reply.read_int(row, "results")), MAX_ITEM),
        file_size=reply.read_int(row, "file_size"),
        open_files=reply.read_int(row, "open_files"),
    )


class CodeContext:
    """A context of one language. It lives in the computer until it is deleted or was not used for an hour."""

    def __init__(self, connection: ComputerConnection, info: ContextInfo) -> None:
        self._connection = connection
        self._limits = info.limits
        self.id = info.id
        self.language = info.language
        self.folder = info.folder

    async def execute(
        self,
        code: str | bytes,
        *,
        call: str | None = None,
        arguments: tuple[str, ...] = (),
        timeout: float | None = None,
        inputs: Mapping[str, bytes] | None = None,
        outputs: tuple[str, ...] = (),
        listener: Listener | None = None,
        name: str | None = None,
    ) -> CodeResult:
        """Run code in the context. Its variables stay. One execution at a time: a second one raises `computer.busy`.

        At its time limit, and when this is cancelled, the code is interrupted first, so that the variables survive. Code
        that does not stop is killed, and the context ends with it. `inputs` and `outputs` are files of its folder.
        In a context of wasm, text that is not a module calls a function of the last one: `"add(40, 2)"`.
        """
        request: dict[str, Any] = {"context": self.id}
        request |= describe_code(self.language, code, call, arguments, outputs, name)
        wall_time = self._limits.wall_time if timeout is None else min(timeout, self._limits.wall_time)
        request["wall_time"] = wall_time
        module = read_module(self.language, code)
        link, limits = self._connection.link, self._limits
        return await run_execution(link, request, inputs or {}, limits, wall_time, listener, module)

    async def evaluate(self, code: str | bytes, **options: Any) -> Any:
        """The value of the last expression. Raises if the code fails. Options as for `execute`."""
        return (await self.execute(code, **options)).check().value

    async def execute_file(self, path: str, **options: Any) -> CodeResult:
        """Run a file of the computer in the context; relative paths are below the workspace. Options as for `execute`."""
        return await self.execute(await self.read_file(path), name=path, **options)

    async def read_file(self, path: str) -> str | bytes:
        """The code in a file of the computer, as `execute` takes it."""
        return await read_code_file(Files(self._connection), self.language, path)

    async def stream(self, code: str | bytes, **options: Any) -> AsyncGenerator[ExecutionPart]:
        """Output and results as they arrive, then the `CodeResult`. Ending the iteration early interrupts the code."""
        async with aclosing(stream_execution(partial(self.execute, code, **options))) as parts:
            async for part in parts:
                yield part

    async def interrupt(self) -> None:
        """Interrupt what runs in it, whoever started it. Its variables stay. Idempotent."""
        await send_request(self._connection.link, {"op": "context.interrupt", "context": self.id})

    async def reset(self) -> None:
        """Forget all variables and files."""
        info = read_context(await send_request(self._connection.link, {"op": "context.reset", "context": self.id}))
        self.folder = info.folder

    async def delete(self) -> None:
        """End it. What runs in it is killed."""
        await send_request(self._connection.link, {"op": "context.delete", "context": self.id})

    async def info(self) -> ContextInfo:
        return read_context(await send_request(self._connection.link, {"op": "context.get", "context": self.id}))


class CodeContexts:
    """The contexts of one language: `computer.python.contexts`."""

    def __init__(self, connection: ComputerConnection, language: str) -> None:
        self._connection = connection
        self._language = language

    async def create(
        self,
        *,
        limits: IsolateLimits | None = None,
        grants: Grants | None = None,
        packages: tuple[str, ...] = (),
        label: str = "",
        apart: str | None = None,
        keep: float = DEFAULT_KEEP,
    ) -> CodeContext:
        """`packages` must be prepared in the computer; nothing is fetched. `keep` is how long it may stay unused."""
        limits, grants = limits or IsolateLimits(), grants or Grants()
        if packages:
            grants = Grants(grants.files, grants.network, (*grants.packages, *packages))
        request = describe_isolate(self._language, limits, grants, apart)
        request |= {"op": "context.create", "label": label, "keep_idle": keep}
        return CodeContext(self._connection, read_context(await send_request(self._connection.link, request)))

    async def get(self, identity: str) -> CodeContext:
        """A context by its id, also one of another program or language."""
        info = read_context(await send_request(self._connection.link, {"op": "context.get", "context": identity}))
        return CodeContext(self._connection, info)

    async def list(self) -> list[ContextInfo]:
        """The contexts of this language, the oldest first."""
        rows = await send_request(self._connection.link, {"op": "context.list"})
        if not isinstance(rows, list):
            raise protocol_error("the list of contexts is not a list")
        return [info for info in map(read_context, rows) if info.language == self._language]

    async def reset(self, identity: str) -> None:
        await (await self.get(identity)).reset()

    async def delete(self, identity: str) -> None:
        await send_request(self._connection.link, {"op": "context.delete", "context": identity})
