"""What a channel is: a way to send to one owner, and for some kinds to hear from one."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

ChannelKind = Literal["email", "matrix", "nostr", "telegram", "webpush"]
Tell = Literal["needs_you", "finished", "failed", "budget", "routine"]
TELLS: tuple[Tell, ...] = ("needs_you", "finished", "failed", "budget", "routine")
"""What the owner can be told of."""

MAX_INCOMING_TEXT = 16_000
"""Characters of one message of the owner."""
MAX_ATTACHMENTS = 10


def read_text(text: object) -> str:
    """Text of others as it can be stored: without half characters and NUL. Empty for anything that is no text."""
    return text.replace("\0", "").encode("utf-8", "replace").decode() if isinstance(text, str) else ""


class ChannelAway(Exception):
    """The channel cannot be used now. `wait`: seconds for which its server asks."""

    def __init__(self, reason: str, *, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class ChannelRefused(Exception):
    """The server does not take this message. Others may go on."""


@dataclass(frozen=True)
class OwnerAddress:
    """Who the owner is in a channel, and the conversation in which the owner is reached."""

    sender: str
    chat: str


@dataclass(frozen=True)
class OutgoingMessage:
    """`key` is the same for every try, so that a repetition can be recognised. `link` opens the page."""

    key: str
    subject: str
    text: str
    link: str
    reply_to: str | None = None


@dataclass(frozen=True)
class IncomingAttachment:
    """`id` is what `fetch` needs. `size` is what the server says, which need not be true."""

    id: str
    name: str
    size: int


@dataclass(frozen=True)
class IncomingMessage:
    """Something that somebody sent. Nothing of it is trusted; `at` is the server's time."""

    id: str
    sender: str
    chat: str
    text: str
    at: float
    reply_to: str | None = None
    attachments: tuple[IncomingAttachment, ...] = ()


@dataclass(frozen=True)
class IncomingBatch:
    """`ignored` counts what was no message of a person to us: groups, bots, invitations, edits.

    `is_cut`: there were more messages, which the server does not tell.
    """

    messages: tuple[IncomingMessage, ...]
    cursor: str
    ignored: int = 0
    is_cut: bool = False


@dataclass(frozen=True)
class PairingOffer:
    """How the owner pairs a channel.

    `expected` is who must send the code; None: anybody who knows it. `typed_here`: the code was sent through the channel
    and is typed in the control center, instead of the other way round.
    """

    words: str
    link: str | None = None
    expected: OwnerAddress | None = None
    typed_here: bool = False


class OwnerChannel(Protocol):
    """One configured channel. Every call ends by itself: it has its own time limit."""

    kind: ClassVar[ChannelKind]
    receives: ClassVar[bool]
    max_text: ClassVar[int]
    """Characters of a message."""

    async def check(self) -> str:
        """Who we are there. Really asks. Raises ChannelAway."""
        ...

    async def offer_pairing(self, code: str, address: str | None) -> PairingOffer:
        """Raises ChannelAway, ChannelRefused, or FreeholdError when the address is missing or wrong."""
        ...

    async def send(self, message: OutgoingMessage, owner: OwnerAddress) -> str | None:
        """Returns when the server has it, with the id that a reply would name. Raises ChannelAway or ChannelRefused."""
        ...

    async def receive(self, cursor: str | None) -> IncomingBatch:
        """Waits for messages after the cursor, for at most half a minute. Without a cursor: from now on.

        Raises ChannelAway.
        """
        ...

    async def fetch(self, attachment: IncomingAttachment, max_bytes: int) -> bytes:
        """Raises ChannelAway or ChannelRefused."""
        ...

    async def close(self) -> None:
        """Idempotent."""
        ...
