"""Code that MCP clients run: contexts that keep variables, and answers with text and pictures."""

import asyncio
import base64
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehold.agents.tools.code_runner import (
    MAX_PICTURE,
    MAX_PICTURES,
    PICTURES,
    CodeCall,
    CodeLanguageName,
    read_source,
)
from freehold.agents.tools.tool import ToolAnswer, ToolPicture
from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from freehold.client._async.code import AsyncCode
    from freehold.client.models import CodeRun
    from freehold.gateway.context import RouteContext

MAX_CONTEXTS = 8
"""Of one token. Each is a process."""
MAX_NAME = 64
MAX_ANSWER = 100_000
CHECK_INTERVAL = 1.0
"""Seconds from the end of a token to the end of its contexts, at most."""
ContextKey = tuple[str, CodeLanguageName, str]
"""The id of a token, a language, and the name that the client has chosen."""
_ENDED = ("computer.no-context", "computer.context-ended")
_GONE = "The variables of earlier calls are gone.\n"


@dataclass(frozen=True)
class NamedContext:
    id: str
    packages: frozenset[str]


class OwnContexts:
    """The contexts of MCP clients. They reach no file and no network.

    One ends with its token, when nobody has used it for `code.keep_contexts`, or when its token needs room for another.
    """

    def __init__(self, context: "RouteContext") -> None:
        self._services = context.services
        self._contexts: dict[ContextKey, NamedContext] = {}
        self._running: Counter[ContextKey] = Counter()
        self._lock = asyncio.Lock()
        self._has_some = asyncio.Event()

    async def run(self) -> None:
        while True:
            await self._has_some.wait()
            await self._delete_of_ended_tokens()
            if self._contexts:
                await asyncio.sleep(CHECK_INTERVAL)
            else:
                self._has_some.clear()

    async def execute(self, code: "AsyncCode", key: ContextKey, call: CodeCall) -> tuple["CodeRun", str]:
        """What the code did, and what the client should know about its context. `code` has the token of the client."""
        source = read_source(call.language, call.code)
        self._running[key] += 1
        try:
            held, note = await self._take(code, key, call.packages)
            try:
                return await code.execute_in(held.id, source, call=call.call), note
            except FreeholdError as error:
                if error.code not in _ENDED:
                    raise
            # It was not used for long, reached a limit, or the computer was started again: nothing has run yet.
            held, _ = await self._take(code, key, call.packages, ended=held)
            return await code.execute_in(held.id, source, call=call.call), _GONE
        finally:
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]

    async def _take(
        self, code: "AsyncCode", key: ContextKey, packages: frozenset[str] | None, ended: NamedContext | None = None
    ) -> tuple[NamedContext, str]:
        """The context with this name. A new one if there is none, or none but one that has ended or has other packages."""
        async with self._lock:
            held = self._contexts.get(key)
            wanted = packages if packages is not None else held.packages if held is not None else frozenset()
            if held is not None and held is ended:
                await _delete(code, self._contexts.pop(key).id)
            if held is None or held is ended:
                await self._make_room(code, key[0])
            if held is None or held is ended or held.packages != wanted:
                _, language, name = key
                made = await code.create_context(language, label=f"mcp {name}", grants={"packages": sorted(wanted)})
                if held is not None and held is not ended:  # only now: without such a package its variables stay
                    await _delete(code, held.id)
                note = f"The context {name!a} is new.\n" if held is None else _GONE
                held = NamedContext(made.id, wanted)
            else:
                note = ""
            self._contexts.pop(key, None)
            self._contexts[key] = held  # the last is the one that was used last
            self._has_some.set()
            return held, note

    async def _make_room(self, code: "AsyncCode", token: str) -> None:
        """Of the contexts of this token in which nothing runs, the one that was not used for longest ends."""
        own = [key for key in self._contexts if key[0] == token]
        if len(own) < MAX_CONTEXTS:
            return
        oldest = next((key for key in own if key not in self._running), None)
        if oldest is None:
            raise FreeholdError(
                "computer.busy",
                f"Code runs in all {MAX_CONTEXTS} contexts of this token, which is the limit",
                hint="Wait until one of them is ready, or run the code without a context",
            )
        await _delete(code, self._contexts.pop(oldest).id)

    async def _delete_of_ended_tokens(self) -> None:
        """Their API calls are refused, so this asks the computer itself."""
        for key, held in list(self._contexts.items()):
            if self._services.tokens.is_active(key[0]):
                continue
            try:
                await self._services.computer.python.contexts.delete(held.id)
            except FreeholdError as error:
                if error.code != "computer.no-context":
                    continue  # the computer is not connected now: it is tried again
            self._contexts.pop(key, None)


async def _delete(code: "AsyncCode", identity: str) -> None:
    try:
        await code.delete_context(identity)
    except FreeholdError as error:
        if error.code != "computer.no-context":
            raise


def describe_code_run(run: "CodeRun", note: str = "") -> ToolAnswer:
    """Output, values and the end as text; pictures as pictures, as many and as large as a model is sent."""
    pictures = [
        ToolPicture(item.type, base64.b64decode(item.data))
        for item in run.items
        if item.type in PICTURES and item.data is not None
    ]
    parts = [run.stdout, run.stderr]
    for item in run.items:
        if item.type in ("json", "text", "table"):
            parts.append(item.text or "")
        else:
            parts.append(f"[{item.type}]")
    if run.limit is not None:
        parts.append(f"The code was ended at its limit: {run.limit}.")
    elif run.error is not None:
        parts.append(run.error.traceback or f"{run.error.name}: {run.error.message}")
    elif run.exit_code:
        parts.append(f"The code ended with exit code {run.exit_code}.")
    text = "\n".join(part.rstrip("\n") for part in parts if part) or "Done. There is no output."
    shown = [picture for picture in pictures if len(picture.content) <= MAX_PICTURE]
    return ToolAnswer((note + text)[:MAX_ANSWER], tuple(shown[:MAX_PICTURES]))
