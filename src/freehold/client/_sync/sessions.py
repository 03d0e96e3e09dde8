# made from _async/sessions.py by python -m tools.generate
"""Sessions, which are conversations with agents: `home.sessions`."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Literal

from freehold.client._sync.connection import SyncConnection
from freehold.client.session_models import (
    AcceptedPrompt,
    AgentOffer,
    Approval,
    ApprovalAnswer,
    RewindInfo,
    SessionEvents,
    SessionInfo,
    SessionPage,
    SessionUpdate,
    TourInfo,
    When,
)
from freehold.client.topic_protocol import quote_segment


class SyncSession:
    """One session. `info` is its state when it was opened or read."""

    def __init__(self, connection: SyncConnection, info: SessionInfo) -> None:
        self._connection = connection
        self.info = info
        self._path = f"/v1/sessions/{quote_segment(info.id)}"

    @property
    def id(self) -> str:
        return self.info.id

    def prompt(
        self, text: str, *, files: Sequence[str] = (), key: str | None = None, when: When = "now"
    ) -> Iterator[SessionUpdate]:
        """Send a prompt and follow its turn to the end. Parts of messages come as deltas.

        Permission requests come as updates, too, and wait for `answer`. A second prompt with the same `key` is ignored.
        """
        at = (self._connection.get(self._path, SessionInfo)).seq
        body = {"text": text, "files": list(files), "key": key or uuid.uuid4().hex, "when": when}
        accepted = self._connection.post(f"{self._path}/prompt", AcceptedPrompt, body)
        for update in self.follow(at):
            yield update
            if update.kind == "turn.ended" and update.turn == accepted.turn:
                return

    def follow(self, after: int | None = None) -> Iterator[SessionUpdate]:
        """All updates from now on, or after an event number. Each stored event comes once and in order. Never ends."""
        at = after
        for message in self._connection.follow(f"session:{self.id}", after):
            if message.kind == "delta":
                yield SessionUpdate(kind=message.data["kind"], data=message.data)
            elif message.kind == "event" and (at is None or message.seq > at):
                at = message.seq
                yield SessionUpdate.model_validate(message.data)
            elif message.kind == "resync":
                # The socket lost messages: read the missed events page by page.
                for missed in self.events(after=message.seq if at is None else at):
                    at = missed.seq
                    yield missed

    def events(self, after: int = 0) -> Iterator[SessionUpdate]:
        """The stored events, the oldest first."""
        place: int | None = after
        while place is not None:
            page = self._connection.get(f"{self._path}/events", SessionEvents, {"after": place})
            yield from page.events
            place = page.next

    def answer(self, approval: str, answer: ApprovalAnswer, note: str | None = None) -> Approval:
        """Answer a permission request. `note` becomes the next prompt, or is the answer to a question."""
        body = {"answer": answer, "note": note}
        return self._connection.post(f"/v1/approvals/{quote_segment(approval)}", Approval, body)

    def see(self, seq: int) -> SessionInfo:
        """Mark events up to `seq` as read. The session is then not `unread` on any device."""
        return self._connection.post(f"{self._path}/seen", SessionInfo, {"seq": seq})

    def cancel(self) -> SessionInfo:
        """Stop the running turn and drop the prompts that wait."""
        return self._connection.post(f"{self._path}/cancel", SessionInfo, {})

    def offer(self) -> AgentOffer:
        """The modes, options and slash commands that the agent offered last, whether it runs or not."""
        return self._connection.get(f"{self._path}/offer", AgentOffer)

    def set_option(self, name: str, value: str | bool) -> SessionInfo:
        """Set a mode, model or other option of the agent."""
        return self._connection.post(f"{self._path}/options", SessionInfo, {"id": name, "value": value})

    def fork(self) -> "SyncSession":
        """A second session with the same transcript."""
        return SyncSession(self._connection, self._connection.post(f"{self._path}/fork", SessionInfo, {}))

    def rewind(
        self,
        turn: int,
        what: Literal["files", "chat", "both"] = "both",
        *,
        dry_run: bool = False,
        restore_id: str | None = None,
    ) -> RewindInfo:
        """Rewind to before a turn. `files` and `both` also need the scope `history`. `restore_id` as for `home.history.undo`."""
        body = {"turn": turn, "what": what, "dry_run": dry_run, "restore_id": restore_id}
        return self._connection.post(f"{self._path}/rewind", RewindInfo, body)

    def choose_model(self, model: str) -> SessionInfo:
        """Use another model from the next prompt on: a provider, `provider/model`, or "" for the default."""
        return self._connection.patch(self._path, SessionInfo, {"model": model})


class SyncSessions:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def open(
        self, agent: str | None = None, *, title: str | None = None, model: str | None = None, folder: str = ""
    ) -> SyncSession:
        """Start a session. Without `agent`, the default agent of the owner is used.

        `folder` is where the agent works: a folder of the workspace, such as a git worktree.
        """
        body = {"agent": agent, "title": title, "model": model, "folder": folder}
        return SyncSession(self._connection, self._connection.post("/v1/sessions", SessionInfo, body))

    def open_tour(self) -> tuple[SyncSession, str]:
        """A session with a script in the place of a model, and the prompt that begins the tour."""
        opened = self._connection.post("/v1/tour", TourInfo, {})
        return self.get(opened.session), opened.prompt

    def get(self, session: str) -> SyncSession:
        """An existing session."""
        info = self._connection.get(f"/v1/sessions/{quote_segment(session)}", SessionInfo)
        return SyncSession(self._connection, info)

    def list(self, query: str = "", *, archived: bool = False, unused: bool = False, cursor: str = "") -> SessionPage:
        """Sessions with `query` in their title or messages, the most recently changed first.

        With `unused` also those that have neither a prompt nor a name.
        """
        params = {"query": query, "archived": archived, "unused": unused, "cursor": cursor}
        return self._connection.get("/v1/sessions", SessionPage, params)

    def approvals(self) -> tuple[Approval, ...]:
        """The permission requests that wait for the owner."""
        return self._connection.get("/v1/approvals", tuple[Approval, ...])

    def delete(self, session: str) -> None:
        """End the agent and delete the session."""
        self._connection.delete(f"/v1/sessions/{quote_segment(session)}", dict)

    def discard(self, session: str) -> None:
        """Delete a session that has neither a prompt nor a name. Raises `session.conflict` for another one."""
        self._connection.post(f"/v1/sessions/{quote_segment(session)}/discard", dict, {})
