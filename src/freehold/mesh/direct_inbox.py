"""Direct messages (NIP-17) of persons: whoever is no neighbour. What they say is used by channels, and by nothing else."""

import asyncio
import secrets
import time
from itertools import islice
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.gateway.direct_messages import DirectMessage, DirectMessageBatch, DirectMessagesAway
from freehold.mesh.nostr.direct_message import CHAT, Rumor, wrap_rumor, write_rumor
from freehold.mesh.nostr.keys import is_hex, read_public_key, show_key
from freehold.mesh.relays import RelaysAway

if TYPE_CHECKING:
    from freehold.mesh.mesh import Mesh

MAX_KEPT, MAX_LENGTH = 5_000, 4 * 1024 * 1024
"""Messages that are kept for who takes them, and their characters. When there are more, the oldest are dropped, and of
characters the longest messages: strangers may send many before a channel reads what its owner wrote."""
MAX_TEXT = 20_000
"""Characters that are kept of a message: more than anybody carries out."""
MAX_BATCH = 100
MAX_AHEAD = 900
"""Seconds by which a message may be dated ahead. One from far ahead could be sent again much later."""
POLL = 25.0


class DirectInbox:
    """Offers `DirectMessages`. Used from the event loop only."""

    def __init__(self, mesh: "Mesh") -> None:
        self._mesh = mesh
        self._name = secrets.token_hex(8)
        self._kept: dict[int, DirectMessage | None] = {}
        self._length = self._last = 0
        self._changed = asyncio.Event()

    @property
    def address(self) -> str:
        return show_key(self._mesh.key.public)

    def read_address(self, text: str) -> str:
        found = read_public_key(text.strip().removeprefix("nostr:"))
        if found == self._mesh.key.public or self._mesh.neighbours.find(found) is not None:
            raise FreeholdError(
                "mesh.bad-key",
                f"{show_key(found)} is the key of a Freehold",
                hint="Give the key that your own Nostr client shows",
            )
        return show_key(found)

    def take(self, rumor: Rumor) -> None:
        """A message that somebody has sealed for this key."""
        self._last += 1
        self._kept[self._last] = self._read(rumor)
        self._length += _length_of(self._kept[self._last])
        while len(self._kept) > MAX_KEPT:
            self._drop(next(iter(self._kept)))
        while self._length > MAX_LENGTH:
            self._drop(max(self._kept, key=lambda number: _length_of(self._kept[number])))
        self._changed.set()

    def _drop(self, number: int) -> None:
        self._length -= _length_of(self._kept.pop(number))

    async def send(self, receiver: str, text: str, reply_to: str | None) -> str:
        other, key = read_public_key(receiver), self._mesh.key
        tags = [["e", reply_to]] if reply_to is not None and is_hex(reply_to, 64) else []
        rumor = write_rumor(key.public, other, text, tags=tags)
        try:
            await self._mesh.relays.deliver(await asyncio.to_thread(wrap_rumor, key, other, rumor))
        except RelaysAway as error:
            raise DirectMessagesAway(str(error)) from None
        return rumor.id

    async def receive(self, position: str | None) -> DirectMessageBatch:
        name, _, number = (position or "").partition(":")
        after = int(number) if name == self._name else 0
        try:
            async with asyncio.timeout(POLL):
                while self._last <= after:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        found = list(islice(((number, one) for number, one in self._kept.items() if number > after), MAX_BATCH))
        last = found[-1][0] if found else self._last
        messages = tuple(one for _, one in found if one is not None)
        return DirectMessageBatch(messages, f"{self._name}:{last}", len(found) - len(messages))

    def _read(self, rumor: Rumor) -> DirectMessage | None:
        """A message of one person to this Freehold alone; None for anything else, such as groups and files."""
        receivers = [tag[1] for tag in rumor.tags if len(tag) > 1 and tag[0] == "p"]
        is_ours = rumor.kind == CHAT and receivers == [self._mesh.key.public]
        if not is_ours or rumor.created_at > time.time() + MAX_AHEAD or rumor.pubkey == self._mesh.key.public:
            return None
        replied = next((tag[1] for tag in rumor.tags if len(tag) > 1 and tag[0] == "e" and is_hex(tag[1], 64)), None)
        at = min(float(rumor.created_at), time.time())
        return DirectMessage(rumor.id, show_key(rumor.pubkey), rumor.content[:MAX_TEXT], at, replied)


def _length_of(message: DirectMessage | None) -> int:
    return 0 if message is None else len(message.text)
