"""A webhook as a sink: each event is a signed request, as Standard Webhooks describes it."""

import asyncio
import base64
import binascii
import hmac
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from freehold.slots.events.cloud_event import CloudEvent
from freehold.slots.events.sink import SinkAway, SinkRefused
from freehold.slots.settings import ExternalSettings

if TYPE_CHECKING:
    import httpx2

TIMEOUT = 15.0
MAX_REPLY = 64 * 1024
MAX_WAIT = 3600.0
_ABOUT_THE_EVENT = frozenset({400, 406, 409, 411, 413, 415, 422, 431})
"""Answers that say that this event is wrong. Every other failure is a problem of the sink."""
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


class Webhook:
    kind = "webhook"

    def __init__(self, settings: ExternalSettings) -> None:
        settings.require_known("url", "secret", "kinds", "max_mb", "privacy")
        self._url = settings.require("url")
        parts = urlsplit(self._url)
        if parts.username is not None or not parts.hostname:
            raise settings.wrong("slots.events.settings.url is not an address of a webhook", 'url = "https://…"')
        if parts.scheme != "https" and parts.hostname not in _HERE:
            raise settings.wrong(
                "slots.events.settings.url is not encrypted", "Use https beyond this machine: events are private"
            )
        self.target = f"{parts.scheme}://{parts.netloc}"
        self._host, self._port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        secret = settings.secret("secret")
        if secret is None:
            raise settings.wrong("slots.events.settings.secret is missing", 'secret = "secret:NAME"')
        try:
            self._secret = base64.b64decode(secret.reveal().removeprefix("whsec_"), validate=True)
        except binascii.Error:
            self._secret = b""
        if not 24 <= len(self._secret) <= 64:
            raise settings.wrong(
                "The secret of the webhook is not 24 to 64 bytes in base64",
                "As Standard Webhooks has it: whsec_ and base64, such as of openssl rand -base64 32",
            )
        self._http: httpx2.AsyncClient | None = None

    async def connect(self) -> None:
        from freehold.slots.bounded_http import make_client

        if self._http is None:
            self._http = make_client(2 * MAX_REPLY, timeout=TIMEOUT)

    async def check(self) -> None:
        try:
            async with asyncio.timeout(5):
                _, writer = await asyncio.open_connection(self._host, self._port)
        except (OSError, TimeoutError) as error:
            raise SinkAway(f"no connection to {self._host}:{self._port}: {_words(error)}") from error
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def send(self, event: CloudEvent) -> None:
        import httpx2

        await self.connect()
        assert self._http is not None
        body = json.dumps(event.as_json(), separators=(",", ":")).encode()
        # The same for every try, so that the receiver recognises a repetition.
        id, now = f"{event.source}/{event.id}", int(time.time())
        headers = {
            "content-type": "application/cloudevents+json; charset=utf-8",
            "webhook-id": id,
            "webhook-timestamp": str(now),
            "webhook-signature": sign(self._secret, id, now, body),
        }
        try:
            async with (
                asyncio.timeout(TIMEOUT),
                self._http.stream("POST", self._url, content=body, headers=headers) as answer,
            ):
                received = 0
                async for part in answer.aiter_raw():
                    received += len(part)
                    if received > MAX_REPLY:
                        break
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            raise SinkAway(f"{self.target}: {_words(error)}") from error
        _read_status(answer.status_code, answer.headers.get("retry-after"), answer.reason_phrase)

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()


def sign(secret: bytes, id: str, at: int, body: bytes) -> str:
    """The signature of Standard Webhooks."""
    return "v1," + base64.b64encode(hmac.digest(secret, f"{id}.{at}.".encode() + body, "sha256")).decode()


def _read_status(status: int, retry_after: str | None, reason: str) -> None:
    if 200 <= status < 300:
        return
    words = f"it answered {status} {reason}".strip()
    if status in _ABOUT_THE_EVENT:
        raise SinkRefused(words)
    asked = float(retry_after) if retry_after is not None and retry_after.isdigit() and len(retry_after) < 9 else 0.0
    raise SinkAway(words, answered=True, wait=min(asked, MAX_WAIT))


def _words(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200] or type(error).__name__
