"""One tool call as the owner sees it: announced, asked about when the mode says so, and ended whatever happens."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

from freehold.builtin.wire import Client, Json

Mode = Literal["ask", "accept-edits", "read-only"]
Kind = Literal["read", "edit", "delete", "search", "execute", "think", "fetch", "other"]

MODES: dict[Mode, tuple[str, str]] = {
    "ask": ("Ask", "Asks before it writes a file or runs a command"),
    "accept-edits": ("Accept edits", "Writes files in the workspace unasked; asks before it runs a command"),
    "read-only": ("Read only", "Writes nothing and runs nothing"),
}
SHOWN = 20_000


class Trouble(Exception):
    """A tool call that did not work out; the words are for the model and for the owner."""


@dataclass
class Step:
    """Use with `async with`. Leaving it by an exception marks the call as failed."""

    client: Client
    session: str
    mode: Mode
    id: str
    title: str
    kind: Kind
    given: Json
    paths: Sequence[str] = ()
    _ended: bool = field(default=False, init=False)

    async def __aenter__(self) -> Self:
        await self._tell("tool_call", status="pending", **self._described())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            if not self._ended:
                await self.end("")
            return
        words = "Cancelled" if isinstance(error, asyncio.CancelledError) else str(error)
        await asyncio.shield(self._tell("tool_call_update", status="failed", content=[_text(words)]))
        if isinstance(error, Trouble):
            from pydantic_ai.exceptions import ToolFailed  # heavy, and no command of the owner's own needs it

            raise ToolFailed(words) from error

    async def permit(self, content: Sequence[Json] = (), *, inside: bool = True) -> None:
        """Ask the owner if the mode says so. Raises `Trouble` when the answer is no.

        `inside` says that what changes is in the workspace, where edits may have been accepted beforehand.
        """
        if self.mode == "read-only":
            raise Trouble(
                "The session is in read-only mode: nothing may be written or run. Tell the user what you would do."
            )
        if self.mode == "accept-edits" and self.kind in ("edit", "delete") and inside:
            await self.show(content)
            return
        answer = await self.client.ask(
            "session/request_permission",
            {
                "sessionId": self.session,
                "toolCall": {"toolCallId": self.id, "status": "pending", "content": list(content), **self._described()},
                # For the session and for always are the owner's answers, which are kept out of our reach.
                "options": [
                    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
                    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
                ],
            },
        )
        outcome = answer.get("outcome")
        if not isinstance(outcome, dict) or outcome.get("outcome") != "selected" or outcome.get("optionId") != "allow":
            raise Trouble("The user rejected this. Do not try it again in another way; ask what to do instead.")

    async def show(self, content: Sequence[Json]) -> None:
        """What there is to see so far, instead of what was shown before."""
        await self._tell("tool_call_update", status="in_progress", content=list(content))

    async def show_text(self, text: str) -> None:
        await self.show([_text(text)])

    async def end(self, text: str, *, content: Sequence[Json] | None = None, failed: bool = False) -> str:
        """The call is over; gives back the text, for the model."""
        self._ended = True
        shown = list(content) if content is not None else [_text(text)]
        await self._tell("tool_call_update", status="failed" if failed else "completed", content=shown)
        return text

    def _described(self) -> Json:
        return {
            "title": self.title,
            "kind": self.kind,
            "rawInput": self.given,
            "locations": [{"path": path} for path in self.paths],
        }

    async def _tell(self, update: str, **told: object) -> None:
        await self.client.update(self.session, {"sessionUpdate": update, "toolCallId": self.id, **told})


def _text(text: str) -> Json:
    return {"type": "content", "content": {"type": "text", "text": shorten(text, SHOWN)}}


def diff(path: str, old: str | None, new: str) -> Json:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def shorten(text: str, most: int) -> str:
    """The beginning and the end of a text that is too long, which is where its sense is."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
