"""One tool call as the owner sees it: reported at its start, asked about if the mode requires it, and always ended."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

from freehold.builtin.json_rpc import AcpClient, Json

Mode = Literal["ask", "accept-edits", "read-only"]
Kind = Literal["read", "edit", "delete", "search", "execute", "think", "fetch", "other"]

MODES: dict[Mode, tuple[str, str]] = {
    "ask": ("Ask", "Asks before it writes a file or runs a command"),
    "accept-edits": ("Accept edits", "Writes files in the workspace without asking; asks before it runs a command"),
    "read-only": ("Read only", "Writes nothing and runs nothing"),
}
MAX_SHOWN = 20_000


class ToolError(Exception):
    """A tool call that failed. The message is for the model and for the owner."""


@dataclass
class BuiltinToolCall:
    """Use with `async with`. An exception marks the call as failed."""

    client: AcpClient
    session: str
    mode: Mode
    id: str
    title: str
    kind: Kind
    given: Json
    paths: Sequence[str] = ()
    _ended: bool = field(default=False, init=False)

    async def __aenter__(self) -> Self:
        await self._send_update("tool_call", status="pending", **self._describe())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            if not self._ended:
                await self.end("")
            return
        words = "Cancelled" if isinstance(error, asyncio.CancelledError) else str(error)
        await asyncio.shield(self._send_update("tool_call_update", status="failed", content=[_text(words)]))

    async def ask_permission(self, content: Sequence[Json] = (), *, inside: bool = True) -> None:
        """Asks the owner if the mode requires it. Raises `ToolError` when the answer is no.

        `inside` says that only the workspace changes, where the mode accept-edits does not ask.
        """
        if self.mode == "read-only":
            raise ToolError(
                "The session is in read-only mode: nothing can be written or run. Tell the user what you would do."
            )
        if self.mode == "accept-edits" and self.kind in ("edit", "delete") and inside:
            await self.show(content)
            return
        answer = await self.client.request(
            "session/request_permission",
            {
                "sessionId": self.session,
                "toolCall": {"toolCallId": self.id, "status": "pending", "content": list(content), **self._describe()},
                # Lasting answers are permission rules on the host, out of the agent's reach.
                "options": [
                    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
                    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
                ],
            },
        )
        outcome = answer.get("outcome")
        if not isinstance(outcome, dict) or outcome.get("outcome") != "selected" or outcome.get("optionId") != "allow":
            raise ToolError("The user rejected this. Do not try it in another way; ask what to do instead.")

    async def show(self, content: Sequence[Json]) -> None:
        """Replaces what is shown of the call so far."""
        await self._send_update("tool_call_update", status="in_progress", content=list(content))

    async def show_text(self, text: str) -> None:
        await self.show([_text(text)])

    async def end(self, text: str, *, content: Sequence[Json] | None = None, failed: bool = False) -> str:
        """Ends the call. Returns the text, for the model."""
        self._ended = True
        shown = list(content) if content is not None else [_text(text)]
        await self._send_update("tool_call_update", status="failed" if failed else "completed", content=shown)
        return text

    def _describe(self) -> Json:
        return {
            "title": self.title,
            "kind": self.kind,
            "rawInput": self.given,
            "locations": [{"path": path} for path in self.paths],
        }

    async def _send_update(self, update: str, **fields: object) -> None:
        await self.client.update(self.session, {"sessionUpdate": update, "toolCallId": self.id, **fields})


def _text(text: str) -> Json:
    return {"type": "content", "content": {"type": "text", "text": shorten(text, MAX_SHOWN)}}


def make_diff(path: str, old: str | None, new: str) -> Json:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def shorten(text: str, max_length: int) -> str:
    """The begin and the end of a text that is too long."""
    if len(text) <= max_length:
        return text
    half = max_length // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters are not shown …]\n{text[-half:]}"
