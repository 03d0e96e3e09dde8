"""A language that runs in isolates: `computer.python.execute("print(1)")`."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Literal

from freehold.computer.isolates.code import describe_code, read_code_file, read_module
from freehold.computer.isolates.context import CodeContexts
from freehold.computer.isolates.execution import CodeResult, ExecutionPart, Listener, run_execution, stream_execution
from freehold.computer.isolates.limits import Grants, IsolateLimits, describe_isolate
from freehold.computer.library.connection import ComputerConnection
from freehold.computer.library.files import Files

LanguageName = Literal["python", "javascript", "typescript", "wasm"]
LANGUAGES: tuple[LanguageName, ...] = ("python", "javascript", "typescript", "wasm")


class CodeLanguage:
    """Runs code in a new isolate each time; `contexts` keep variables.

    The code of `wasm` is a module: its bytes, or its text. A command of WASI runs, and `call` calls a function instead.
    An isolate may use what `IsolateLimits` say and reach what `Grants` say. Whatever it does, it ends alone.
    """

    def __init__(self, connection: ComputerConnection, name: LanguageName, *, idle_after: float | None = None) -> None:
        """`idle_after`: seconds after which the guest ends an interpreter that nobody uses (five minutes)."""
        self._connection = connection
        self._idle_after = idle_after
        self._name: LanguageName = name
        self._files = Files(connection)
        self.contexts = CodeContexts(connection, name)

    async def execute(
        self,
        code: str | bytes,
        *,
        call: str | None = None,
        arguments: tuple[str, ...] = (),
        timeout: float | None = None,
        limits: IsolateLimits | None = None,
        grants: Grants | None = None,
        inputs: Mapping[str, bytes] | None = None,
        outputs: tuple[str, ...] = (),
        apart: str | None = None,
        listener: Listener | None = None,
        name: str | None = None,
    ) -> CodeResult:
        """Run code to its end. Cancelling the awaiting task kills it.

        `timeout` shortens `limits.wall_time`.
        `arguments` are those of a program. `call` names a function of a WASM module with numbers: `"add(40, 2)"`.
        `inputs` are files that the code finds in its folder; `outputs` are patterns of files there that come back.
        `listener` is called with output and results as they arrive. `apart` is as for `Computer.spawn`.
        """
        limits, grants = limits or IsolateLimits(), grants or Grants()
        request = describe_isolate(self._name, limits, grants, apart)
        request |= describe_code(self._name, code, call, arguments, outputs, name)
        if self._idle_after is not None:
            request["idle_after"] = self._idle_after
        wall_time = limits.wall_time if timeout is None else min(timeout, limits.wall_time)
        request["wall_time"] = wall_time
        module = read_module(self._name, code)
        return await run_execution(self._connection.link, request, inputs or {}, limits, wall_time, listener, module)

    async def evaluate(self, code: str | bytes, **options: Any) -> Any:
        """The value of the last expression: JSON, bytes or a table. Raises if the code fails. Options as for `execute`."""
        return (await self.execute(code, **options)).check().value

    async def execute_file(self, path: str, **options: Any) -> CodeResult:
        """Run a file of the computer; relative paths are below the workspace. Options as for `execute`."""
        return await self.execute(await self.read_file(path), name=path, **options)

    async def read_file(self, path: str) -> str | bytes:
        """The code in a file of the computer, as `execute` takes it."""
        return await read_code_file(self._files, self._name, path)

    async def stream(self, code: str | bytes, **options: Any) -> AsyncGenerator[ExecutionPart]:
        """Output and results as they arrive, then the `CodeResult`. Ending the iteration early kills the code."""
        async with aclosing(stream_execution(partial(self.execute, code, **options))) as parts:
            async for part in parts:
                yield part
