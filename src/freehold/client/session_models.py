"""What a conversation with an agent is made of, as frozen objects."""

from typing import Any, Literal

from freehold.client.answers import Answer

Choice = Literal["once", "session", "always", "reject"]
When = Literal["now", "queue", "steer"]


class SessionInfo(Answer):
    """One conversation with one agent; `seq` is the number of its last event."""

    id: str
    title: str
    agent: str
    model: str | None = None
    status: Literal["idle", "working", "needs_you", "failed", "queued"]
    created: str
    updated: str
    archived: bool
    cost: float | None = None
    seq: int = 0
    unread: bool = False


class SessionPage(Answer):
    """Sessions, the last changed first; give `next` as `cursor` for more."""

    sessions: tuple[SessionInfo, ...]
    next: str | None = None


class Update(Answer):
    """Something that happened in a session.

    With a `seq` it is kept: `kind` is turn.started, message, thought, tool, plan, approval, turn.ended and so on.
    Without one it is a piece of a message or thought that is still being said: `data` has `id` and `text`.
    """

    seq: int | None = None
    turn: int | None = None
    kind: str
    data: dict[str, Any]

    @property
    def is_delta(self) -> bool:
        return self.seq is None


class SessionEvents(Answer):
    events: tuple[Update, ...]
    next: int | None = None


class PromptTaken(Answer):
    """The turn that a prompt became, and whether it waits for the one before."""

    turn: int
    queued: bool


class Approval(Answer):
    """A question of an agent's; `details` holds the exact command or change, or with `kind` "question" what is asked."""

    id: str
    session: str
    state: str
    answer: Choice | None = None
    note: str | None = None
    kind: str
    title: str
    details: dict[str, Any]
