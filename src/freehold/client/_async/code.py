"""Code in isolates of the computer: `home.code`."""

import base64
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Literal

from freehold.client._async.connection import AsyncConnection
from freehold.client.code_value import read_value
from freehold.client.models import CodeContextDeleted, CodeContextState, CodePart, CodeRun
from freehold.client.problems import stream_error
from freehold.client.topic_protocol import quote_segment

Language = Literal["python", "javascript", "typescript", "wasm"]


class AsyncCode:
    """Every call needs the scope `terminal`.

    The code of `wasm` is a module: its bytes, or its text. `call` calls a function of it, as in `"add(40, 2)"`.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def execute(
        self,
        language: Language,
        code: str | bytes,
        *,
        call: str | None = None,
        arguments: tuple[str, ...] = (),
        timeout: float | None = None,
        inputs: Mapping[str, bytes] | None = None,
        outputs: tuple[str, ...] = (),
        limits: Mapping[str, float] | None = None,
        grants: Mapping[str, Any] | None = None,
    ) -> CodeRun:
        """Run code in a sealed process of its own. `limits` and `grants` are as in the description of the API."""
        body = _describe(code, call, arguments, timeout, inputs, outputs)
        return await self._connection.post(
            "/v1/code/execute", CodeRun, {**body, "language": language, **_options(limits, grants)}
        )

    async def evaluate(self, language: Language, code: str | bytes, **options: Any) -> Any:
        """The value of the last expression: JSON, bytes, or a table as an object with `columns` and `rows`.

        Raises if the code fails. Options as for `execute`.
        """
        return read_value(await self.execute(language, code, **options))

    async def execute_file(
        self,
        language: Language,
        path: str,
        *,
        call: str | None = None,
        arguments: tuple[str, ...] = (),
        timeout: float | None = None,
        inputs: Mapping[str, bytes] | None = None,
        outputs: tuple[str, ...] = (),
        limits: Mapping[str, float] | None = None,
        grants: Mapping[str, Any] | None = None,
    ) -> CodeRun:
        """Run a file of the computer, as `execute` runs code. Relative paths are below the workspace."""
        body = _describe("", call, arguments, timeout, inputs, outputs)
        body |= {"language": language, "file": path, **_options(limits, grants)}
        return await self._connection.post("/v1/code/execute", CodeRun, body)

    async def stream(
        self,
        language: Language,
        code: str | bytes,
        *,
        call: str | None = None,
        arguments: tuple[str, ...] = (),
        timeout: float | None = None,
        inputs: Mapping[str, bytes] | None = None,
        outputs: tuple[str, ...] = (),
        limits: Mapping[str, float] | None = None,
        grants: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[CodePart]:
        """As `execute`, with each part as it arrives. Closing the iteration ends the code."""
        body = _describe(code, call, arguments, timeout, inputs, outputs)
        body |= {"language": language, **_options(limits, grants)}
        async with aclosing(self._stream("/v1/code/stream", body)) as parts:
            async for part in parts:
                yield part

    async def create_context(
        self,
        language: Language,
        *,
        label: str = "",
        limits: Mapping[str, float] | None = None,
        grants: Mapping[str, Any] | None = None,
    ) -> CodeContextState:
        """A context keeps variables until it is deleted or was not used for `code.keep_contexts`."""
        body = {"language": language, "label": label, **_options(limits, grants)}
        return await self._connection.post("/v1/code/contexts", CodeContextState, body)

    async def contexts(self) -> tuple[CodeContextState, ...]:
        return await self._connection.get("/v1/code/contexts", tuple[CodeContextState, ...])

    async def context(self, identity: str) -> CodeContextState:
        return await self._connection.get(_address(identity), CodeContextState)

    async def execute_in(
        self,
        identity: str,
        code: str | bytes,
        *,
        call: str | None = None,
        arguments: tuple[str, ...] = (),
        timeout: float | None = None,
        inputs: Mapping[str, bytes] | None = None,
        outputs: tuple[str, ...] = (),
    ) -> CodeRun:
        """Run code with the variables of a context."""
        body = _describe(code, call, arguments, timeout, inputs, outputs)
        return await self._connection.post(f"{_address(identity)}/execute", CodeRun, body)

    async def execute_file_in(
        self,
        identity: str,
        path: str,
        *,
        call: str | None = None,
        arguments: tuple[str, ...] = (),
        timeout: float | None = None,
        inputs: Mapping[str, bytes] | None = None,
        outputs: tuple[str, ...] = (),
    ) -> CodeRun:
        """Run a file of the computer with the variables of a context. Relative paths are below the workspace."""
        body = _describe("", call, arguments, timeout, inputs, outputs) | {"file": path}
        return await self._connection.post(f"{_address(identity)}/execute", CodeRun, body)

    async def evaluate_in(self, identity: str, code: str | bytes, **options: Any) -> Any:
        """As `evaluate`, with the variables of a context. Options as for `execute_in`."""
        return read_value(await self.execute_in(identity, code, **options))

    async def stream_in(
        self,
        identity: str,
        code: str | bytes,
        *,
        call: str | None = None,
        arguments: tuple[str, ...] = (),
        timeout: float | None = None,
        inputs: Mapping[str, bytes] | None = None,
        outputs: tuple[str, ...] = (),
    ) -> AsyncGenerator[CodePart]:
        """As `execute_in`, with each part as it arrives. Closing the iteration interrupts the code; the variables stay."""
        body = _describe(code, call, arguments, timeout, inputs, outputs)
        async with aclosing(self._stream(f"{_address(identity)}/stream", body)) as parts:
            async for part in parts:
                yield part

    async def interrupt_context(self, identity: str) -> CodeContextState:
        """Interrupt what runs in the context, whoever started it. The variables stay."""
        return await self._connection.post(f"{_address(identity)}/interrupt", CodeContextState, {})

    async def reset_context(self, identity: str) -> CodeContextState:
        """Forget all variables and files of the context."""
        return await self._connection.post(f"{_address(identity)}/reset", CodeContextState, {})

    async def delete_context(self, identity: str) -> CodeContextDeleted:
        return await self._connection.delete(_address(identity), CodeContextDeleted)

    async def _stream(self, path: str, body: dict[str, Any]) -> AsyncGenerator[CodePart]:
        async with aclosing(self._connection.stream(path, CodePart, body)) as parts:
            async for part in parts:
                if part.failure is not None:
                    raise stream_error(part.failure.code, part.failure.message, part.failure.hint)
                yield part


def _address(identity: str) -> str:
    return f"/v1/code/contexts/{quote_segment(identity)}"


def _describe(
    code: str | bytes,
    call: str | None,
    arguments: tuple[str, ...],
    timeout: float | None,
    inputs: Mapping[str, bytes] | None,
    outputs: tuple[str, ...],
) -> dict[str, Any]:
    source = {"code": code} if isinstance(code, str) else {"module": base64.b64encode(code).decode()}
    encoded = {name: base64.b64encode(content).decode() for name, content in (inputs or {}).items()}
    return {
        **source,
        "call": call,
        "arguments": list(arguments),
        "timeout": timeout,
        "inputs": encoded,
        "outputs": list(outputs),
    }


def _options(limits: Mapping[str, float] | None, grants: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"limits": dict(limits or {}), "grants": dict(grants or {})}
