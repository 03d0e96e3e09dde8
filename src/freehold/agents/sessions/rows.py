"""What the store of sessions returns: sessions, their turns and their events."""

from dataclasses import dataclass, fields
from typing import Literal

from freehold.agents.acp.json_rpc import Json
from freehold.computer.contract.conventions import WORKSPACE

Status = Literal["idle", "working", "needs_you", "failed", "queued"]
TurnState = Literal["queued", "sent", "ended"]

DraftEvent = tuple[str, Json]
"""The kind and the data of a session event that is not stored yet."""


@dataclass(frozen=True)
class SessionRow:
    """One session. `named` means that the owner chose the title; `acp` is the agent's own id of the session."""

    id: str
    title: str
    named: bool
    agent: str
    model: str | None
    status: Status
    created: str
    updated: str
    archived: bool
    cost: float | None
    acp: str | None
    seq: int
    turns: int
    chosen: Json
    parent: str | None
    unread: bool
    mode: str | None = None
    asks: bool | None = None
    """Whether its agent is known to ask before it acts; None before the agent's first start."""
    folder: str = ""
    """Where its agent works, below the workspace; empty for the workspace itself."""
    waiting: Json | None = None
    """Its place in the queue of agents, while it waits there. Not stored."""

    @property
    def place(self) -> str:
        """The folder in which its agent works, as programs in the computer name it."""
        return f"{WORKSPACE}/{self.folder}" if self.folder else WORKSPACE

    def as_json(self) -> Json:
        hidden = ("named", "acp", "turns", "chosen")
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in hidden}


@dataclass(frozen=True)
class SessionEventRow:
    """One session event. `seq` counts within its session."""

    seq: int
    at: str
    turn: int | None
    kind: str
    data: Json

    def as_json(self) -> Json:
        return {"seq": self.seq, "at": self.at, "turn": self.turn, "kind": self.kind, "data": self.data}


@dataclass(frozen=True)
class TurnRow:
    """One turn. `entry` is the history entry with the state of the files before it."""

    turn: int
    key: str
    prompt: Json
    state: TurnState
    entry: int | None
