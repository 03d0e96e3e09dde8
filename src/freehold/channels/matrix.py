"""Matrix: the client-server API, in one room that we make and into which only the owner is invited.

The room is not encrypted end to end: that needs a native library of its own, and keys that survive. The homeserver can
read what is said, as Telegram's servers can.
"""

import asyncio
import json
import re
import time
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

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
from freehold.channels.http_calls import HttpCaller
from freehold.channels.kinds import FindSecret, MatrixSettings, max_text
from freehold.channels.words import cut
from freehold.errors import FreeholdError

POLL = 25.0
MAX_REPLY = 8 * 1024 * 1024
MAX_EVENTS = 50
"""Of one room at once. Of more, the homeserver tells the last."""
MAX_MESSAGES = 200
_USER = re.compile(r"@[^\s:]{1,200}:[A-Za-z0-9.:\[\]-]{1,200}", re.ASCII)
_ROOM = re.compile(r"![^\s/?#]{1,250}", re.ASCII)
_EVENT = re.compile(r"\$[\x21-\x7e]{1,299}", re.ASCII)
_MEDIA = re.compile(r"mxc://([A-Za-z0-9.:-]{1,255})/([A-Za-z0-9_-]{1,255})", re.ASCII)
_CLIENT = "/_matrix/client/v3"
_FILES = frozenset({"m.file", "m.image", "m.audio", "m.video"})
_QUOTED = re.compile(r"\A(?:> [^\n]*\n)+\n?")
"""How older clients repeat the message to which a reply belongs."""


class MatrixChannel:
    kind: ClassVar[ChannelKind] = "matrix"
    receives: ClassVar[bool] = True
    max_text: ClassVar[int] = max_text("matrix")

    def __init__(self, settings: MatrixSettings, secret: FindSecret) -> None:
        self._settings = settings
        self._secret = secret
        self._http = HttpCaller(MAX_REPLY)
        self._user: str | None = None

    async def check(self) -> str:
        found = await self._call("GET", f"{_CLIENT}/account/whoami")
        user = found.get("user_id")
        if not isinstance(user, str) or _USER.fullmatch(user) is None:
            raise ChannelAway("the homeserver does not say who we are")
        self._user = user
        return user

    async def offer_pairing(self, code: str, address: str | None) -> PairingOffer:
        """Makes the room. We never join one: an invitation of a stranger stays without an answer."""
        if address is None or _USER.fullmatch(address) is None:
            raise FreeholdError(
                "channels.bad-address",
                "Matrix needs your own address to invite you",
                hint="An address is like @you:example.com",
            )
        if await self.check() == address:
            raise FreeholdError(
                "channels.bad-address",
                f"{address} is the account of this channel",
                hint="Give your own address; the channel has an account of its own",
            )
        made = await self._call(
            "POST",
            f"{_CLIENT}/createRoom",
            {
                "preset": "private_chat",
                "name": "Freehold",
                "is_direct": True,
                "invite": [address],
                "power_level_content_override": {"invite": 100, "events_default": 0, "state_default": 100},
                "initial_state": [
                    {"type": "m.room.guest_access", "state_key": "", "content": {"guest_access": "forbidden"}}
                ],
            },
        )
        room = made.get("room_id")
        if not isinstance(room, str) or _ROOM.fullmatch(room) is None:
            raise ChannelAway("the homeserver made no room")
        return PairingOffer(
            f"Accept the invitation to the room Freehold as {address}, and send there: /pair {code}",
            expected=OwnerAddress(address, room),
        )

    async def send(self, message: OutgoingMessage, owner: OwnerAddress) -> str | None:
        text = cut(f"{message.subject}\n{message.text}".strip(), self.max_text)
        content: dict[str, Any] = {"msgtype": "m.text", "body": f"{text}\n{message.link}"}
        if message.reply_to is not None:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": message.reply_to}}
        # The server takes a message with the same number once only.
        path = f"{_CLIENT}/rooms/{quote(owner.chat, safe='')}/send/m.room.message/{quote(message.key, safe='')}"
        sent = await self._call("PUT", path, content, is_message=True)
        event = sent.get("event_id")
        return event if isinstance(event, str) and _EVENT.fullmatch(event) else None

    async def receive(self, cursor: str | None) -> IncomingBatch:
        """Messages of all our rooms: those that are not in the owner's are strangers to the caller."""
        wanted = {
            "presence": {"types": []},
            "account_data": {"types": []},
            "room": {
                "account_data": {"types": []},
                "ephemeral": {"types": []},
                "state": {"types": []},
                "timeline": {"types": ["m.room.message"], "limit": MAX_EVENTS},
            },
        }
        query = {"filter": json.dumps(wanted), "set_presence": "offline", "timeout": "0"}
        if cursor is not None:
            query |= {"since": cursor, "timeout": str(int(POLL * 1000))}
        found = await self._call("GET", f"{_CLIENT}/sync?{urlencode(query)}", timeout=POLL + 15)
        following = found.get("next_batch")
        if not isinstance(following, str) or not 0 < len(following) <= 1000:
            raise ChannelAway("the homeserver does not say how far we are")
        rooms = _object(found.get("rooms"))
        if cursor is None:
            return IncomingBatch((), following)
        if self._user is None:
            await self.check()
        messages, ignored = list[IncomingMessage](), len(_object(rooms.get("invite")))
        is_cut = False
        for room, content in _object(rooms.get("join")).items():
            timeline = _object(_object(content).get("timeline"))
            events = timeline.get("events")
            events = events if isinstance(events, list) else []
            # The end of a room that was just made counts as cut too.
            is_cut = is_cut or (timeline.get("limited") is True and len(events) >= MAX_EVENTS)
            for event in events:
                if _object(event).get("sender") == self._user:
                    continue
                message = _read_event(room, event)
                if message is None:
                    ignored += 1
                else:
                    messages.append(message)
        ignored += max(0, len(messages) - MAX_MESSAGES)
        return IncomingBatch(tuple(messages[:MAX_MESSAGES]), following, ignored, is_cut)

    async def fetch(self, attachment: IncomingAttachment, max_bytes: int) -> bytes:
        media = _MEDIA.fullmatch(attachment.id)
        if media is None:
            raise ChannelRefused("the message does not say where the file is")
        url = f"{self._settings.homeserver}/_matrix/client/v1/media/download/{media[1]}/{media[2]}"
        return await self._http.download(url, await self._headers(), max_bytes)

    async def close(self) -> None:
        await self._http.close()

    async def _headers(self) -> dict[str, str]:
        secret = await asyncio.to_thread(self._secret)
        return {"authorization": f"Bearer {secret.reveal()}"}

    async def _call(
        self, method: str, path: str, body: Any = None, *, timeout: float = 20.0, is_message: bool = False
    ) -> dict[str, Any]:
        url = f"{self._settings.homeserver}{path}"
        status, content = await self._http.request(
            method, url, headers=await self._headers(), json=body, timeout=timeout
        )
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            raise ChannelAway(f"the answer {status} of the homeserver is not JSON") from None
        if not isinstance(answer, dict):
            raise ChannelAway(f"the answer {status} of the homeserver is not an object")
        if status == 200:
            return answer
        words = f"{status} {str(answer.get('errcode'))[:60]}: {str(answer.get('error'))[:150]}"
        wait = answer.get("retry_after_ms")
        if is_message and status in (400, 403, 413):
            raise ChannelRefused(words)
        raise ChannelAway(words, wait=min(wait / 1000, 3600.0) if isinstance(wait, int | float) else 0.0)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _read_event(room: str, event: dict[str, Any]) -> IncomingMessage | None:
    """A new message of a person; None for edits, notices of bots, and anything else."""
    content, id, sender, at = (
        _object(event.get("content")),
        event.get("event_id"),
        event.get("sender"),
        event.get("origin_server_ts"),
    )
    kind, text = content.get("msgtype"), content.get("body")
    relation = _object(content.get("m.relates_to"))
    if (
        event.get("type") != "m.room.message"
        or not isinstance(id, str)
        or _EVENT.fullmatch(id) is None
        or not isinstance(sender, str)
        or _USER.fullmatch(sender) is None
        or type(at) is not int
        or not isinstance(text, str)
        or relation.get("rel_type") == "m.replace"
    ):
        return None
    reply_to = _object(relation.get("m.in_reply_to")).get("event_id")
    reply = reply_to if isinstance(reply_to, str) and _EVENT.fullmatch(reply_to) else None
    # The server of the sender says when it was sent. It cannot be in the future.
    moment = min(at / 1000, time.time())
    if kind in _FILES:
        media, name = content.get("url"), content.get("filename", text)
        size = _object(content.get("info")).get("size")
        if not isinstance(media, str) or not isinstance(name, str):
            return None
        file = IncomingAttachment(read_text(media)[:600], read_text(name)[:200], size if type(size) is int else 0)
        caption = read_text(text) if text != name else ""
        return IncomingMessage(id, sender, room, caption, moment, reply, (file,))
    if kind != "m.text":
        return None
    words = read_text(text)
    return IncomingMessage(id, sender, room, _QUOTED.sub("", words) if reply else words, moment, reply)
