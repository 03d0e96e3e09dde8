"""NATS JetStream as a sink: each event is one message that the server has stored before it counts as delivered."""

import asyncio
import json
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from freehold.slots.events.cloud_event import OWN_TYPES, CloudEvent
from freehold.slots.events.sink import SinkAway, SinkRefused
from freehold.slots.settings import ExternalSettings

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

TIMEOUT = 5.0
CLOSE_TIMEOUT = 1.0
SCHEMES = frozenset({"nats", "tls", "ws", "wss"})
PUBLISHED_WORD = "published"
"""No kind of the timeline begins with it."""
_Result = TypeVar("_Result")
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"


class NatsStream:
    """The subject of an event is its type after a prefix: `freehold.history.undone`.

    What a program has published stands under a word of its own, `freehold.published.com.example.done`, so that no type
    that it chooses looks like an event of Freehold.
    """

    kind = "nats"

    def __init__(self, settings: ExternalSettings) -> None:
        settings.require_known("url", "stream", "prefix", "token", "user", "password", "kinds", "max_mb", "privacy")
        self._url = settings.require("url")
        parts = urlsplit(self._url)
        if parts.scheme not in SCHEMES or not parts.hostname or parts.username is not None:
            raise settings.wrong(
                "slots.events.settings.url is not an address of a NATS server",
                'url = "tls://nats.example.com:4222", with token = "secret:NAME" beside it',
            )
        if parts.scheme in ("nats", "ws") and parts.hostname not in _HERE:
            raise settings.wrong("slots.events.settings.url is not encrypted", "Use tls:// beyond this machine")
        self.target = f"{parts.scheme}://{parts.netloc}"
        self._stream = settings.find("stream") or "freehold"
        self._prefix = settings.find("prefix") or "freehold"
        for name in (self._stream, self._prefix):
            if not name.strip(_NAME) == "" or not name:
                raise settings.wrong("The stream and the prefix of events are plain names", "Use letters and digits")
        self._options: dict[str, Any] = {}
        for name in ("token", "password"):
            secret = settings.secret(name)
            if secret is not None:
                self._options[name] = secret.reveal()
        if settings.find("user"):
            self._options["user"] = settings.find("user")
        try:
            import nats  # noqa: F401
        except ImportError as error:
            raise settings.wrong(
                "slots.events is in NATS, and the client for it is not installed",
                f"{sys.executable} -m pip install 'freehold[nats]'",
            ) from error
        self._client: Client | None = None

    async def connect(self) -> None:
        await self._ready()

    async def check(self) -> None:
        import nats.errors

        stream = await self._ready()
        try:
            await _run_apart(stream.stream_info(self._stream))
        except (nats.errors.Error, OSError, TimeoutError) as error:
            await self.close()
            raise SinkAway(f"{self.target}: {_words(error)}") from error

    async def send(self, event: CloudEvent) -> None:
        import nats.errors
        import nats.js.errors

        stream = await self._ready()
        body = json.dumps(event.as_json(), separators=(",", ":")).encode()
        # The server drops a message whose id it has seen within its window.
        headers = {"Nats-Msg-Id": f"{event.source}/{event.id}", "content-type": "application/cloudevents+json"}
        try:
            await _run_apart(
                stream.publish(self.subject_of(event), body, timeout=TIMEOUT, stream=self._stream, headers=headers)
            )
        except nats.errors.MaxPayloadError as error:
            raise SinkRefused("the event is larger than a message of this server may be") from error
        except nats.js.errors.APIError as error:
            if error.err_code == 10054:
                raise SinkRefused("the event is larger than a message of this stream may be") from error
            raise SinkAway(f"{self.target}: {error.description or error.code}", answered=True) from error
        except (nats.errors.Error, OSError, TimeoutError) as error:
            await self.close()
            raise SinkAway(f"{self.target}: {_words(error)}") from error

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await _close(client)

    async def remove_stream(self) -> None:
        """Removes everything in it. Only for a stream that was made for a trial."""
        stream = await self._ready()
        await stream.delete_stream(self._stream)

    def subject_of(self, event: CloudEvent) -> str:
        """Types have only letters, digits, `-`, `_` and dots, so that each part is one token."""
        is_own = event.type.startswith(OWN_TYPES)
        return f"{self._prefix}.{event.type.removeprefix(OWN_TYPES) if is_own else f'{PUBLISHED_WORD}.{event.type}'}"

    async def _ready(self) -> "JetStreamContext":
        """The connected stream. It is made when the server does not have it."""
        import nats.errors
        import nats.js.errors
        from nats.aio.client import Client

        if self._client is not None and self._client.is_connected:
            return self._client.jetstream(timeout=TIMEOUT)
        await self.close()
        self._client = Client()
        try:
            async with asyncio.timeout(TIMEOUT):
                await _run_apart(
                    self._client.connect(
                        self._url, name="freehold", allow_reconnect=False, error_cb=_ignore, **self._options
                    )
                )
            stream = self._client.jetstream(timeout=TIMEOUT)
            try:
                await _run_apart(stream.stream_info(self._stream))
            except nats.js.errors.NotFoundError:
                await _run_apart(stream.add_stream(name=self._stream, subjects=[f"{self._prefix}.>"]))
        except (nats.errors.Error, OSError, TimeoutError) as error:
            await self.close()
            raise SinkAway(f"{self.target}: {_words(error)}") from error
        except asyncio.CancelledError:
            await self.close()
            raise
        return stream


async def _close(client: "Client") -> None:
    """Ends the connection, also one that hangs or was never made: the client itself leaves its socket open then."""
    try:
        with suppress(Exception):  # whatever a broken connection meets while it is closed
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await _run_apart(client.close())
    finally:
        transport: Any = client._transport
        if transport is not None:
            transport.close()
            with suppress(Exception):
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await _run_apart(transport.wait_closed())


async def _run_apart(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Runs a call of the client in a task of its own: the client swallows a cancellation that comes together with an
    answer, and the slot would never end.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([asyncio.gather(task, return_exceptions=True)], timeout=CLOSE_TIMEOUT)
        raise
    return task.result()


async def _ignore(error: Exception) -> None:
    """Each call gets its own error."""


def _words(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200] or type(error).__name__
