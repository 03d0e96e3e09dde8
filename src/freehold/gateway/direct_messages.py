"""Encrypted direct messages between persons and this Freehold.

The feature that has the keys offers them, and another uses them: neither needs to know the other.
"""

from dataclasses import dataclass
from typing import Protocol


class DirectMessagesAway(Exception):
    """Nothing can be sent or received now. The text says why."""


@dataclass(frozen=True)
class DirectMessage:
    """What somebody has written to this Freehold and to nobody else.

    It is proven that `sender` wrote it; `at` is what the sender says. `reply_to` is the id of another message.
    """

    id: str
    sender: str
    text: str
    at: float
    reply_to: str | None


@dataclass(frozen=True)
class DirectMessageBatch:
    """`position` is what the next call gives. `ignored` counts what was no message of one person to us."""

    messages: tuple[DirectMessage, ...]
    position: str
    ignored: int = 0


class DirectMessages(Protocol):
    @property
    def address(self) -> str:
        """Where persons write to."""
        ...

    def read_address(self, text: str) -> str:
        """The address of a person as messages name it. Raises FreeholdError."""
        ...

    async def send(self, receiver: str, text: str, reply_to: str | None) -> str:
        """Returns the id when a server has it. Raises DirectMessagesAway; then it is not sent later either."""
        ...

    async def receive(self, position: str | None) -> DirectMessageBatch:
        """Waits for messages for at most half a minute. After a restart, those of the last days may come again."""
        ...


@dataclass
class DirectMessageBox:
    """`service` is None while no feature offers it."""

    service: DirectMessages | None = None
