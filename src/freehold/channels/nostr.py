"""Nostr: encrypted direct messages (NIP-17) from any client, over the relays and with the key of the mesh."""

import time
from typing import ClassVar

from freehold.channels.contract import (
    ChannelAway,
    ChannelKind,
    ChannelRefused,
    IncomingAttachment,
    IncomingBatch,
    IncomingMessage,
    OutgoingMessage,
    OwnerAddress,
    PairingOffer,
    read_text,
)
from freehold.channels.kinds import max_text
from freehold.channels.words import cut, measure
from freehold.errors import FreeholdError
from freehold.gateway.direct_messages import DirectMessageBox, DirectMessages, DirectMessagesAway


class NostrChannel:
    """Its position is the moment at which it was added, and that of the messages. Older messages are not heard."""

    kind: ClassVar[ChannelKind] = "nostr"
    receives: ClassVar[bool] = True
    max_text: ClassVar[int] = max_text("nostr")

    def __init__(self, messages: DirectMessageBox) -> None:
        self._messages = messages

    async def check(self) -> str:
        return self._service().address

    async def offer_pairing(self, code: str, address: str | None) -> PairingOffer:
        service = self._service()
        expected: OwnerAddress | None = None
        if address is not None:
            try:
                owner = service.read_address(address)
            except FreeholdError as error:
                raise FreeholdError("channels.bad-address", error.message, hint=error.hint) from None
            expected = OwnerAddress(owner, owner)
        words = f"Send an encrypted direct message from your Nostr client to {service.address}: /pair {code}"
        return PairingOffer(words, f"nostr:{service.address}", expected)

    async def send(self, message: OutgoingMessage, owner: OwnerAddress) -> str | None:
        text = cut(f"{message.subject}\n{message.text}".strip(), self.max_text - measure(message.link) - 1)
        try:
            return await self._service().send(owner.sender, f"{text}\n{message.link}", message.reply_to)
        except DirectMessagesAway as error:
            raise ChannelAway(str(error)) from None

    async def receive(self, cursor: str | None) -> IncomingBatch:
        service = self._service()
        if cursor is None:
            return IncomingBatch((), f"{int(time.time())}/")
        since, _, position = cursor.partition("/")
        batch = await service.receive(position or None)
        messages = tuple(
            IncomingMessage(one.id, one.sender, one.sender, read_text(one.text), one.at, one.reply_to)
            for one in batch.messages
            if one.at >= int(since)
        )
        return IncomingBatch(messages, f"{since}/{batch.position}", batch.ignored)

    async def fetch(self, attachment: IncomingAttachment, max_bytes: int) -> bytes:
        raise ChannelRefused("files are not taken through Nostr")

    async def close(self) -> None:
        """Nothing is open: the mesh keeps the connections."""

    def _service(self) -> DirectMessages:
        if self._messages.service is None:
            raise ChannelAway('the mesh does not run: set mode = "peer" in [mesh] of freehold.toml')
        return self._messages.service
