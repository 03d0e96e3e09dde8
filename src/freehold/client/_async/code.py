"""Code in isolates of the computer: `home.code`."""

import base64
from collections.abc import Mapping
from typing import Any, Literal

from freehold.client._async.connection import AsyncConnection
from freehold.client.models import CodeContextDeleted, CodeContextState, CodeRun
from freehold.client.topic_protocol import quote_segment

Language = Literal["python", "javascript", "typescript"]


class AsyncCode:
    """Every call needs the scope `terminal`."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def execute(
        self,
        language: Language,
        code: str,
        *,
        timeout: float | None = None,
        inputs: Mapping[str, bytes] | None = None,
        outputs: tuple[str, ...] = (),
        limits: Mapping[str, float] | None = None,
        grants: Mapping[str, Any] | None = None,
    ) -> CodeRun:
        """Run code in a sealed process of its own. `limits` and `grants` are as in the description of the API."""
        body = {**_describe(code, timeout, inputs, outputs), "language": language, **_options(limits, grants)}
        return await self._connection.post("/v1/code/execute", CodeRun, body)

    async def create_context(
        self,
        language: Language,
        *,
        label: str = "",
        limits: Mapping[str, float] | None = None,
        grants: Mapping[str, Any] | None = None,
    ) -> CodeContextState:
        """A context keeps variables until it is deleted or was not used for an hour."""
        body = {"language": language, "label": label, **_options(limits, grants)}
        return await self._connection.post("/v1/code/contexts", CodeContextState, body)

    async def contexts(self) -> tuple[CodeContextState, ...]:
        return await self._connection.get("/v1/code/contexts", tuple[CodeContextState, ...])

    async def context(self, identity: str) -> CodeContextState:
        return await self._connection.get(_address(identity), CodeContextState)

    async def execute_in(
        self,
        identity: str,
        code: str,
        *,
        timeout: float | None = None,
        inputs: Mapping[str, bytes] | None = None,
        outputs: tuple[str, ...] = (),
    ) -> CodeRun:
        """Run code with the variables of a context."""
        body = _describe(code, timeout, inputs, outputs)
        return await self._connection.post(f"{_address(identity)}/execute", CodeRun, body)

    async def reset_context(self, identity: str) -> CodeContextState:
        """Forget all variables and files of the context."""
        return await self._connection.post(f"{_address(identity)}/reset", CodeContextState, {})

    async def delete_context(self, identity: str) -> CodeContextDeleted:
        return await self._connection.delete(_address(identity), CodeContextDeleted)


def _address(identity: str) -> str:
    return f"/v1/code/contexts/{quote_segment(identity)}"


def _describe(
    code: str, timeout: float | None, inputs: Mapping[str, bytes] | None, outputs: tuple[str, ...]
) -> dict[str, Any]:
    encoded = {name: base64.b64encode(content).decode() for name, content in (inputs or {}).items()}
    return {"code": code, "timeout": timeout, "inputs": encoded, "outputs": list(outputs)}


def _options(limits: Mapping[str, float] | None, grants: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"limits": dict(limits or {}), "grants": dict(grants or {})}
