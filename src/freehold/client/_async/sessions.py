"""Conversations with agents: `home.sessions`."""

import uuid
from collections.abc import AsyncIterator, Sequence

from freehold.client._async.connection import AsyncConnection, segment
from freehold.client.sessions import (
    Approval,
    Choice,
    PromptTaken,
    SessionEvents,
    SessionInfo,
    SessionPage,
    Update,
    When,
)


class AsyncSession:
    """One conversation. `info` is how it was when it was opened or read."""

    def __init__(self, connection: AsyncConnection, info: SessionInfo) -> None:
        self._connection = connection
        self.info = info
        self._path = f"/v1/sessions/{segment(info.id)}"

    @property
    def id(self) -> str:
        return self.info.id

    async def prompt(
        self, text: str, *, files: Sequence[str] = (), key: str | None = None, when: When = "now"
    ) -> AsyncIterator[Update]:
        """Send a prompt and follow what comes of it, to the end of its turn; pieces of messages come as deltas.

        Approvals come as updates, too, and wait for `answer`. The same `key` never makes a second turn.
        """
        at = (await self._connection.get(self._path, SessionInfo)).seq
        body = {"text": text, "files": list(files), "key": key or uuid.uuid4().hex, "when": when}
        taken = await self._connection.post(f"{self._path}/prompt", PromptTaken, body)
        async for update in self.follow(at):
            yield update
            if update.kind == "turn.ended" and update.turn == taken.turn:
                return

    async def follow(self, after: int | None = None) -> AsyncIterator[Update]:
        """Everything that happens in it from now on, or after a number; each kept event once and in order, for ever."""
        at = after
        async for message in self._connection.follow(f"session:{self.id}", after):
            if message.kind == "delta":
                yield Update(kind=message.data["kind"], data=message.data)
            elif message.kind == "event" and (at is None or message.seq > at):
                at = message.seq
                yield Update.model_validate(message.data)
            elif message.kind == "resync":
                # More was missed than the socket hands over: the rest is read page by page.
                async for missed in self.events(after=message.seq if at is None else at):
                    at = missed.seq
                    yield missed

    async def events(self, after: int = 0) -> AsyncIterator[Update]:
        """What is kept of it, the oldest first."""
        place: int | None = after
        while place is not None:
            page = await self._connection.get(f"{self._path}/events", SessionEvents, {"after": place})
            for event in page.events:
                yield event
            place = page.next

    async def answer(self, approval: str, answer: Choice, note: str | None = None) -> Approval:
        """Answer a question; whoever asked goes on at once. A note is the next prompt, or the words that were asked for."""
        body = {"answer": answer, "note": note}
        return await self._connection.post(f"/v1/approvals/{segment(approval)}", Approval, body)

    async def see(self, seq: int) -> SessionInfo:
        """The owner has read up to an event: it is not `unread` any more, wherever they look."""
        return await self._connection.post(f"{self._path}/seen", SessionInfo, {"seq": seq})

    async def cancel(self) -> SessionInfo:
        """Stop the turn under way, and forget what waits behind it."""
        return await self._connection.post(f"{self._path}/cancel", SessionInfo, {})

    async def set_option(self, name: str, value: str | bool) -> SessionInfo:
        """Set a mode, model or other option that its agent offers."""
        return await self._connection.post(f"{self._path}/options", SessionInfo, {"id": name, "value": value})


class AsyncSessions:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def open(
        self, agent: str | None = None, *, title: str | None = None, model: str | None = None
    ) -> AsyncSession:
        """A new conversation, with the owner's usual agent unless one is named."""
        body = {"agent": agent, "title": title, "model": model}
        return AsyncSession(self._connection, await self._connection.post("/v1/sessions", SessionInfo, body))

    async def get(self, session: str) -> AsyncSession:
        """One that was opened before."""
        info = await self._connection.get(f"/v1/sessions/{segment(session)}", SessionInfo)
        return AsyncSession(self._connection, info)

    async def list(self, query: str = "", *, archived: bool = False, cursor: str = "") -> SessionPage:
        """Those with `query` in their title or words, the last changed first."""
        asked = {"query": query, "archived": archived, "cursor": cursor}
        return await self._connection.get("/v1/sessions", SessionPage, asked)

    async def approvals(self) -> tuple[Approval, ...]:
        """The questions that wait for the owner."""
        return await self._connection.get("/v1/approvals", tuple[Approval, ...])

    async def delete(self, session: str) -> None:
        """End its agent and forget what was said."""
        await self._connection.delete(f"/v1/sessions/{segment(session)}", dict)
