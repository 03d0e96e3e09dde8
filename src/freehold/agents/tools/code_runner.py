"""`run_code`: a host tool that runs code in isolates. Each session has one context for each language."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from freehold.agents.tools.tool import ToolAnswer, ToolPicture
from freehold.computer.contract.conventions import WORKSPACE
from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from freehold.computer import CodeContext, CodeResult, Computer

MAX_ANSWER = 20_000
"""Characters of the answer. The middle of a longer one is left out."""
PICTURES = ("image/png", "image/jpeg")
MAX_PICTURES, MAX_PICTURE = 4, 1024 * 1024
"""How many pictures of an answer are sent, and how large each may be. The text names all of them."""
MAX_PACKAGES = 10
CodeLanguageName = Literal["python", "javascript", "typescript", "wasm"]
LANGUAGES: tuple[CodeLanguageName, ...] = ("python", "javascript", "typescript", "wasm")
ContextKey = tuple[str, CodeLanguageName]
_MODULE_AS_TEXT = "AGFzbQ"
"""How the first bytes of every WebAssembly module look in base64. No module in the text format begins like this."""
_GONE = "The variables of earlier calls are gone.\n"


@dataclass(frozen=True)
class SessionContext:
    """A context, the packages that were loaded into it, and the computer in which it is."""

    computer: Computer
    context: CodeContext
    packages: frozenset[str]


@dataclass(frozen=True)
class CodeCall:
    """What an agent wants to run. `call` is for wasm. Without `packages` the context is used as it is."""

    language: CodeLanguageName
    code: str
    call: str | None = None
    packages: frozenset[str] | None = None


class CodeRunner:
    """Contexts by session and language, in the computer in which the session works.

    They read the workspace; they write no file and reach no network.
    """

    def __init__(self, computer_of: Callable[[str], Computer]) -> None:
        self._computer_of = computer_of
        self._contexts: dict[ContextKey, SessionContext] = {}
        self._running: Counter[ContextKey] = Counter()
        self._lock = asyncio.Lock()

    async def run(self, session: str, call: CodeCall) -> ToolAnswer:
        """What the code wrote, and the value of its last expression, as text for a model; figures as pictures."""
        source = read_source(call.language, call.code)
        key = session, call.language
        self._running[key] += 1
        try:
            context, note = await self._take(key, call.packages)
            try:
                result = await context.execute(source, call=call.call)
            except FreeholdError as error:
                # It was ended by a limit, or the computer was started again: nothing has run yet.
                if error.code not in ("computer.no-context", "computer.context-ended"):
                    raise
                note = _GONE
                context, _ = await self._take(key, call.packages, ended=context)
                result = await context.execute(source, call=call.call)
        finally:
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]
        pictures = [item for item in result.items if item.type in PICTURES and len(item.content) <= MAX_PICTURE]
        shown = tuple(ToolPicture(item.type, item.content) for item in pictures[:MAX_PICTURES])
        return ToolAnswer(shorten(note + describe_result(result)), shown)

    async def _take(
        self, key: ContextKey, packages: frozenset[str] | None, ended: CodeContext | None = None
    ) -> tuple[CodeContext, str]:
        """The context of a session, and what the agent should know about it.

        A new one if it has none, or none but the one that has ended, or one with other packages.
        """
        computer = self._computer_of(key[0])
        async with self._lock:
            held = self._contexts.get(key)
            wanted = packages if packages is not None else held.packages if held is not None else frozenset()
            if held is not None and held.context is ended:
                del self._contexts[key]
                await _delete(held.context)
                held = None
            replaced = held if held is not None and held.computer is computer and held.packages != wanted else None
            if held is None or held.computer is not computer or replaced is not None:
                held = SessionContext(computer, await self._create(computer, key, wanted), wanted)
            if replaced is not None:  # only now: without such a package its variables stay
                await _delete(replaced.context)
            self._contexts.pop(key, None)
            self._contexts[key] = held  # the last is the one that was used last
            return held.context, "" if replaced is None else _GONE

    async def _create(self, computer: Computer, key: ContextKey, packages: frozenset[str]) -> CodeContext:
        from freehold.computer import Grants  # few sessions run code

        session, language = key
        self._forget_ended()
        create = partial(
            getattr(computer, language).contexts.create,
            grants=Grants({WORKSPACE: "r"}),
            packages=tuple(sorted(packages)),
            label=f"session {session}",
            apart=session,
        )
        try:
            context: CodeContext = await create()
        except FreeholdError as error:
            if error.code != "computer.busy" or not await self._delete_oldest(computer):
                raise
            context = await create()
        return context

    def _forget_ended(self) -> None:
        """The computer of a run has ended, and its contexts with it."""
        for key, held in list(self._contexts.items()):
            try:
                has_moved = self._computer_of(key[0]) is not held.computer
            except FreeholdError as error:
                has_moved = error.code == "session.run.conflict"  # else it is not connected now
            if has_moved:
                del self._contexts[key]

    async def _delete_oldest(self, computer: Computer) -> bool:
        """Make room for another context: of those in which nothing runs, the one that was not used for longest goes."""
        for key, held in self._contexts.items():
            if held.computer is computer and key not in self._running:
                del self._contexts[key]
                await _delete(held.context)
                return True
        return False


async def _delete(context: CodeContext) -> None:
    try:
        await context.delete()
    except FreeholdError as error:
        if error.code != "computer.no-context":
            raise


def read_source(language: CodeLanguageName, code: str) -> str | bytes:
    """The code, or the bytes of a WebAssembly module that came in base64. Raises `tool.wrong-arguments`."""
    if language != "wasm" or not code.startswith(_MODULE_AS_TEXT):
        return code
    try:
        return base64.b64decode(code, validate=True)
    except (binascii.Error, ValueError):
        raise FreeholdError("tool.wrong-arguments", "run_code: the module is not valid base64") from None


def describe_result(result: CodeResult) -> str:
    parts = [result.text, result.stderr.decode(errors="replace")]
    for item in result.items:
        if item.type in ("json", "text", "table"):
            parts.append(item.content.decode(errors="replace"))
        else:
            parts.append(f"[{item.type}, {len(item.content)} bytes]")
    if result.limit is not None:
        parts.append(f"The code was ended at its limit: {result.limit}.")
    elif result.error is not None:
        parts.append(result.error.traceback or f"{result.error.name}: {result.error.message}")
    elif result.exit_code:
        parts.append(f"The code ended with exit code {result.exit_code}.")
    return "\n".join(part.rstrip("\n") for part in parts if part) or "Done. There is no output."


def shorten(text: str) -> str:
    if len(text) <= MAX_ANSWER:
        return text
    half = MAX_ANSWER // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters are left out …\n{text[-half:]}"
