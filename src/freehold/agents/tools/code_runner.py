"""`run_code`: a host tool that runs code in isolates. Each session has one context for each language."""

from __future__ import annotations

import asyncio
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
CodeLanguageName = Literal["python", "javascript", "typescript"]
LANGUAGES: tuple[CodeLanguageName, ...] = ("python", "javascript", "typescript")
ContextKey = tuple[str, CodeLanguageName]


@dataclass(frozen=True)
class SessionContext:
    """A context, and the computer in which it is."""

    computer: Computer
    context: CodeContext


class CodeRunner:
    """Contexts by session and language, in the computer in which the session works.

    They read the workspace; they write no file and reach no network.
    """

    def __init__(self, computer_of: Callable[[str], Computer]) -> None:
        self._computer_of = computer_of
        self._contexts: dict[ContextKey, SessionContext] = {}
        self._running: Counter[ContextKey] = Counter()
        self._lock = asyncio.Lock()

    async def run(self, session: str, language: CodeLanguageName, code: str) -> ToolAnswer:
        """What the code wrote, and the value of its last expression, as text for a model; figures as pictures."""
        note = ""
        key = session, language
        self._running[key] += 1
        try:
            context = await self._take(key)
            try:
                result = await context.execute(code)
            except FreeholdError as error:
                # It was ended by a limit, or the computer was started again: nothing has run yet.
                if error.code not in ("computer.no-context", "computer.context-ended"):
                    raise
                note = "The variables of earlier calls are gone.\n"
                result = await (await self._take(key, ended=context)).execute(code)
        finally:
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]
        pictures = [item for item in result.items if item.type in PICTURES and len(item.content) <= MAX_PICTURE]
        shown = tuple(ToolPicture(item.type, item.content) for item in pictures[:MAX_PICTURES])
        return ToolAnswer(shorten(note + describe_result(result)), shown)

    async def _take(self, key: ContextKey, ended: CodeContext | None = None) -> CodeContext:
        """The context of a session; a new one if it has none, or none but the one that has ended."""
        computer = self._computer_of(key[0])
        async with self._lock:
            held = self._contexts.pop(key, None)
            if held is not None and held.context is ended:
                await _delete(held.context)
                held = None
            if held is None or held.computer is not computer:
                held = SessionContext(computer, await self._create(computer, *key))
            self._contexts[key] = held  # the last is the one that was used last
            return held.context

    async def _create(self, computer: Computer, session: str, language: CodeLanguageName) -> CodeContext:
        from freehold.computer import Grants  # few sessions run code

        self._forget_ended()
        create = partial(
            getattr(computer, language).contexts.create,
            grants=Grants({WORKSPACE: "r"}),
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
