"""Web Push: to every browser of the owner that has asked for it. Nothing is received."""

import asyncio
import json
import socket
from hashlib import sha256
from typing import ClassVar
from urllib.parse import urlsplit

from freehold.channels.contract import (
    ChannelAway,
    ChannelKind,
    ChannelRefused,
    IncomingAttachment,
    IncomingBatch,
    OutgoingMessage,
    OwnerAddress,
    PairingOffer,
)
from freehold.channels.http_calls import HttpCaller
from freehold.channels.kinds import is_here, max_text
from freehold.channels.push_encryption import MAX_CONTENT, encode_url, encrypt, sign_for
from freehold.channels.subscriptions import PushSubscription, PushSubscriptions
from freehold.errors import FreeholdError
from freehold.manifest.addresses import is_private

TTL = 86_400
MAX_REPLY = 64 * 1024
RETRY_DELAYS = (1.0, 5.0)
"""Seconds before a browser that cannot be reached is tried again, when another one has the message already. Not longer: the
next message for that one must not wait."""
_GONE = frozenset({404, 410})


class WebPushChannel:
    kind: ClassVar[ChannelKind] = "webpush"
    receives: ClassVar[bool] = False
    max_text: ClassVar[int] = max_text("webpush")

    def __init__(self, subscriptions: PushSubscriptions) -> None:
        self._subscriptions = subscriptions
        self._http = HttpCaller(MAX_REPLY)

    async def check(self) -> str:
        count = len(await asyncio.to_thread(self._subscriptions.list))
        if not count:
            raise ChannelAway("no browser gets messages")
        return f"{count} browser{'' if count == 1 else 's'}"

    async def offer_pairing(self, code: str, address: str | None) -> PairingOffer:
        raise FreeholdError(
            "channels.bad-request",
            "Push messages are turned on in the browser that shall get them",
            hint="Open the page Channels in that browser",
        )

    async def send(self, message: OutgoingMessage, owner: OwnerAddress) -> str | None:
        """To all browsers. It counts as sent when one has it, and the others were tried again; one that is gone is
        forgotten."""
        found = await asyncio.to_thread(self._subscriptions.list)
        if not found:
            raise ChannelRefused("no browser gets messages")
        key = await asyncio.to_thread(self._subscriptions.read_key)
        tag = encode_url(sha256(message.key.encode()).digest()[:16])
        text = message.text if len(message.text) <= self.max_text else message.text[: self.max_text - 1] + "…"
        content = {"title": message.subject[:200], "body": text, "link": message.link[:600], "tag": tag}
        data = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        while len(data) > MAX_CONTENT:
            content["body"] = content["body"][: len(content["body"]) // 2] + "…"
            data = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        outcomes = await self._push_all(found, data, tag, key)
        if any(outcome is None for outcome in outcomes.values()):
            for delay in RETRY_DELAYS:
                away = [one for one in found if isinstance(outcomes[one], ChannelAway)]
                if not away:
                    break
                await asyncio.sleep(delay)
                outcomes |= await self._push_all(away, data, tag, key)
            return tag
        failures = [outcome for outcome in outcomes.values() if outcome is not None]
        # One that may have it later is a reason to try again.
        raise next((one for one in failures if isinstance(one, ChannelAway)), failures[0])

    async def receive(self, cursor: str | None) -> IncomingBatch:
        raise ChannelAway("push messages go one way")

    async def fetch(self, attachment: IncomingAttachment, max_bytes: int) -> bytes:
        raise ChannelRefused("push messages go one way")

    async def close(self) -> None:
        await self._http.close()

    async def _push_all(
        self, found: list[PushSubscription], data: bytes, tag: str, key: object
    ) -> dict[PushSubscription, BaseException | None]:
        """Why each of them has not got it."""
        outcomes = await asyncio.gather(*(self._push(one, data, tag, key) for one in found), return_exceptions=True)
        return dict(zip(found, outcomes, strict=True))

    async def _push(self, to: PushSubscription, data: bytes, tag: str, key: object) -> None:
        from freehold.channels.push_encryption import Key

        assert isinstance(key, Key)
        headers = {
            "authorization": sign_for(to.endpoint, key, self._subscriptions.contact),
            "content-encoding": "aes128gcm",
            "content-type": "application/octet-stream",
            "ttl": str(TTL),
            "urgency": "normal",
            # A push that waits is replaced by one with the same topic: a repetition is shown once.
            "topic": tag,
        }
        await _require_public(to.endpoint)
        status, _ = await self._http.request(
            "POST", to.endpoint, headers=headers, content=encrypt(data, to.read_keys())
        )
        if status in _GONE:
            await asyncio.to_thread(self._subscriptions.remove, to.id)
            raise ChannelRefused("a browser does not get messages any more")
        if status in (400, 401, 403, 413):
            raise ChannelRefused(f"the push service answers {status}")
        if not 200 <= status < 300:
            raise ChannelAway(f"the push service answers {status}")


async def _require_public(endpoint: str) -> None:
    """A name says nothing about the address behind it. Raises ChannelRefused, or ChannelAway when it has none."""
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    if is_here(host):
        return  # it was checked when it was added
    try:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ChannelAway("the push service has no address") from None
    if any(is_private(str(address[0]).partition("%")[0]) for *_, address in found):
        raise ChannelRefused("the name of a push service leads into this network")
