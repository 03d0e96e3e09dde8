"""`run_code`: a host tool that runs code in isolates. Each session has one context for each language."""

from collections.abc import Callable
from typing import Literal

from freehold.agents.tools.tool import ToolAnswer, ToolPicture
from freehold.computer import CodeContext, CodeResult, Computer, Grants
from freehold.computer.contract.conventions import WORKSPACE
from freehold.errors import FreeholdError

MAX_ANSWER = 20_000
"""Characters of the answer. The middle of a longer one is left out."""
PICTURES = ("image/png", "image/jpeg")
MAX_PICTURES, MAX_PICTURE = 4, 1024 * 1024
"""How many pictures of an answer are sent, and how large each may be. The text names all of them."""
CodeLanguageName = Literal["python", "javascript", "typescript"]
LANGUAGES: tuple[CodeLanguageName, ...] = ("python", "javascript", "typescript")
READ_WORKSPACE = Grants({WORKSPACE: "r"})


class CodeRunner:
    """Contexts by session and language. They read the workspace; they write no file and reach no network."""

    def __init__(self, computer: Callable[[], Computer]) -> None:
        self._computer = computer
        self._contexts: dict[tuple[str, CodeLanguageName], CodeContext] = {}

    async def run(self, session: str, language: CodeLanguageName, code: str) -> ToolAnswer:
        """What the code wrote, and the value of its last expression, as text for a model; figures as pictures."""
        note = ""
        context = self._contexts.get((session, language))
        if context is None:
            context = await self._create(session, language)
        try:
            result = await context.execute(code)
        except FreeholdError as error:
            # It was ended by a limit, or the computer was started again: nothing has run yet.
            if error.code not in ("computer.no-context", "computer.context-ended"):
                raise
            note = "The variables of earlier calls are gone.\n"
            result = await (await self._create(session, language)).execute(code)
        pictures = [item for item in result.items if item.type in PICTURES and len(item.content) <= MAX_PICTURE]
        shown = tuple(ToolPicture(item.type, item.content) for item in pictures[:MAX_PICTURES])
        return ToolAnswer(shorten(note + describe_result(result)), shown)

    async def _create(self, session: str, language: CodeLanguageName) -> CodeContext:
        known = self._contexts.pop((session, language), None)
        if known is not None:
            await _delete(known)
        contexts = getattr(self._computer(), language).contexts
        context: CodeContext = await contexts.create(grants=READ_WORKSPACE, label=f"session {session}", apart=session)
        self._contexts[session, language] = context
        return context


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
