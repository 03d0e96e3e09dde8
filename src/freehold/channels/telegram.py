"""Telegram: the Bot API by long polling. Nothing of ours listens, so no update can be forged from outside."""

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any, ClassVar

from freehold.channels.contract import (
    MAX_ATTACHMENTS,
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
from freehold.channels.kinds import FindSecret, TelegramSettings, max_text
from freehold.channels.words import cut, measure

if TYPE_CHECKING:
    from freehold.observe.secrets import Secret

POLL = 25
"""Seconds for which the server holds a poll."""
MAX_UPDATES = 50
MAX_REPLY = 4 * 1024 * 1024
_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{10,100}", re.ASCII)
_FILE_PATH = re.compile(r"[A-Za-z0-9_-]+(?:[/.][A-Za-z0-9_-]+)*", re.ASCII)
_FILES = ("document", "audio", "video", "voice", "animation", "video_note")


class TelegramChannel:
    kind: ClassVar[ChannelKind] = "telegram"
    receives: ClassVar[bool] = True
    max_text: ClassVar[int] = max_text("telegram")

    def __init__(self, settings: TelegramSettings, secret: FindSecret) -> None:
        self._settings = settings
        self._secret = secret
        self._http = HttpCaller(MAX_REPLY)

    async def check(self) -> str:
        me = await self._call("getMe", {})
        name = me.get("username") if isinstance(me, dict) else None
        if not isinstance(name, str) or re.fullmatch(r"[A-Za-z0-9_]{1,64}", name) is None:
            raise ChannelAway("the answer to getMe names no bot")
        return name

    async def offer_pairing(self, code: str, address: str | None) -> PairingOffer:
        name = await self.check()
        link = f"https://t.me/{name}?start={code}"
        return PairingOffer(f"Send /pair {code} to @{name} in Telegram", link)

    async def send(self, message: OutgoingMessage, owner: OwnerAddress) -> str | None:
        text = cut(f"{message.subject}\n{message.text}".strip(), self.max_text - measure(message.link) - 1)
        body: dict[str, Any] = {
            "chat_id": int(owner.chat),
            "text": f"{text}\n{message.link}",
            "link_preview_options": {"is_disabled": True},
        }
        if message.reply_to is not None and message.reply_to.isdecimal():
            body["reply_parameters"] = {"message_id": int(message.reply_to), "allow_sending_without_reply": True}
        sent = await self._call("sendMessage", body)
        number = sent.get("message_id") if isinstance(sent, dict) else None
        return str(number) if isinstance(number, int) else None

    async def receive(self, cursor: str | None) -> IncomingBatch:
        body: dict[str, Any] = {"timeout": POLL, "limit": MAX_UPDATES, "allowed_updates": ["message"]}
        if cursor is not None:
            body["offset"] = int(cursor)
        else:
            body |= {"offset": -1, "timeout": 0}  # forgets what was sent before the channel was added
        updates = await self._call("getUpdates", body, timeout=POLL + 10)
        if not isinstance(updates, list) or len(updates) > MAX_UPDATES:
            raise ChannelAway("the answer to getUpdates is not a list of updates")
        found, ignored, following = list[IncomingMessage](), 0, int(cursor or 0)
        for update in updates:
            number = update.get("update_id") if isinstance(update, dict) else None
            if type(number) is not int or not 0 <= number < 2**53:
                raise ChannelAway("an update has no number")
            if number < following:
                continue  # repeated
            following = number + 1
            message = _read_message(update.get("message"))
            if message is None:
                ignored += 1
            elif cursor is not None:
                found.append(message)
        if not updates and cursor is None:
            following = 0
        return IncomingBatch(tuple(found), str(following), ignored)

    async def fetch(self, attachment: IncomingAttachment, max_bytes: int) -> bytes:
        file = await self._call("getFile", {"file_id": attachment.id})
        path = file.get("file_path") if isinstance(file, dict) else None
        if not isinstance(path, str) or _FILE_PATH.fullmatch(path) is None or len(path) > 300:
            raise ChannelRefused("the server does not say where the file is")
        token = await self._token()
        return await self._http.download(f"{self._settings.api}/file/bot{token.reveal()}/{path}", {}, max_bytes)

    async def close(self) -> None:
        await self._http.close()

    async def _token(self) -> "Secret":
        token = await asyncio.to_thread(self._secret)
        if _TOKEN.fullmatch(token.reveal()) is None:
            raise ChannelAway("the secret is not a token of a bot")
        return token

    async def _call(self, method: str, body: dict[str, Any], *, timeout: float = 20.0) -> Any:
        token = await self._token()
        url = f"{self._settings.api}/bot{token.reveal()}/{method}"
        status, content = await self._http.request("POST", url, json=body, timeout=timeout)
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            raise ChannelAway(f"{method}: the answer {status} is not JSON") from None
        if isinstance(answer, dict) and answer.get("ok") is True and "result" in answer:
            return answer["result"]
        words = str(answer.get("description") if isinstance(answer, dict) else answer)[:200].replace(
            token.reveal(), "…"
        )
        parameters = answer.get("parameters") if isinstance(answer, dict) else None
        wait = parameters.get("retry_after") if isinstance(parameters, dict) else None
        if method == "sendMessage" and status in (400, 403):
            raise ChannelRefused(f"{method}: {words}")
        raise ChannelAway(
            f"{method}: {status} {words}", wait=min(float(wait), 3600.0) if isinstance(wait, int | float) else 0.0
        )


def _read_message(found: object) -> IncomingMessage | None:
    """A message of one person in a private chat with the bot; None for anything else."""
    if not isinstance(found, dict):
        return None
    sender, chat, number, at = found.get("from"), found.get("chat"), found.get("message_id"), found.get("date")
    if not isinstance(sender, dict) or not isinstance(chat, dict) or type(number) is not int or type(at) is not int:
        return None
    who, where = sender.get("id"), chat.get("id")
    # In a private chat both are the same number. A forwarded or automatic message is nobody's order.
    private = chat.get("type") == "private" and type(who) is int and who == where
    if not private or sender.get("is_bot") is not False or "forward_origin" in found or "via_bot" in found:
        return None
    text = found.get("text", found.get("caption", ""))
    replied = found.get("reply_to_message")
    reply_to = replied.get("message_id") if isinstance(replied, dict) else None
    return IncomingMessage(
        str(number),
        str(who),
        str(where),
        read_text(text),
        float(at),
        str(reply_to) if type(reply_to) is int else None,
        tuple(_read_attachments(found))[:MAX_ATTACHMENTS],
    )


def _read_attachments(found: dict[str, Any]) -> list[IncomingAttachment]:
    files = [found[name] for name in _FILES if isinstance(found.get(name), dict)]
    photos = found.get("photo")
    if isinstance(photos, list) and photos and isinstance(photos[-1], dict):
        files.append({"file_name": "photo.jpg", **photos[-1]})  # the last is the largest
    made = []
    for file in files:
        id, name, size = file.get("file_id"), file.get("file_name", "file"), file.get("file_size", 0)
        if isinstance(id, str) and 0 < len(id) <= 300 and isinstance(name, str) and type(size) is int:
            made.append(IncomingAttachment(read_text(id), read_text(name)[:200], size))
    return made
