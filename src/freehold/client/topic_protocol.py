"""The messages of the gateway's socket, without any input or output: both halves of the client use it."""

import json
import logging
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from websockets.exceptions import ConnectionClosed, InvalidStatus

from freehold.client.problems import connection_error, error_from_reply, unexpected_reply
from freehold.errors import FreeholdError

FIRST_RETRY = 0.1
MAX_RETRY = 10.0
SIGNED_OUT = 4401
BAD_MESSAGE = 4400

# At level DEBUG, websockets logs all headers of the handshake, including the token.
SOCKET_LOGGER = logging.getLogger("freehold.client.socket")
SOCKET_LOGGER.setLevel(logging.WARNING)


@dataclass(frozen=True)
class TopicMessage:
    """A message of a topic. `resync` means that messages were lost: read the list again, then continue."""

    kind: Literal["event", "delta", "resync"]
    seq: int
    data: Any = None


class TopicSubscription:
    """The position in one topic, and the wait before the next attempt to connect."""

    def __init__(self, url: str, topic: str, after: int | None, timeout: float) -> None:
        self._url = url
        self._topic = topic
        self._after = after
        self._timeout = timeout
        self._wait = FIRST_RETRY

    def connect_options(self, headers: dict[str, str]) -> dict[str, Any]:
        """Arguments for `connect` of websockets."""
        return {
            "uri": f"ws{self._url.removeprefix('http')}/v1/socket",
            "additional_headers": headers,
            "open_timeout": self._timeout,
            "compression": None,
            "proxy": None,
            "max_size": None,
            "logger": SOCKET_LOGGER,
        }

    def request(self) -> str:
        """What is sent after connecting: the topic, from the message after the last one received."""
        message: dict[str, Any] = {"type": "subscribe", "topic": self._topic}
        return json.dumps(message if self._after is None else {**message, "after": self._after})

    def receive(self, text: str | bytes) -> TopicMessage | None:
        """The message to pass on; None for one that was received before or that is not for the caller."""
        self._wait = FIRST_RETRY
        try:
            message = json.loads(text)
            kind, seq = message["type"], int(message.get("seq", 0))
            if kind == "error":
                raise FreeholdError(message["code"], message["message"])
        except (ValueError, KeyError, TypeError) as error:
            raise unexpected_reply(self._url, error) from error
        if kind == "subscribed":
            self._after = seq if self._after is None else self._after
        is_known = kind == "event" and self._after is not None and seq <= self._after
        if is_known or kind not in ("event", "delta", "resync"):
            return None
        if kind != "delta":
            self._after = seq
        return TopicMessage(kind, seq, message.get("data"))

    def note_failure(self, error: Exception) -> None:
        """Raise an error that a new attempt cannot solve."""
        if isinstance(error, InvalidStatus):
            self._wait = max(self._wait, _read_retry_delay(self._url, error))
        elif isinstance(error, ConnectionClosed):
            _raise_if_final(self._url, error)
        elif (problem := connection_error(self._url, error, self._timeout)).code == "client.tls":
            raise problem from error

    def next_wait(self) -> float:
        """Seconds before the next attempt; twice as many after each."""
        wait, self._wait = self._wait, min(MAX_RETRY, self._wait * 2)
        return wait


def _read_retry_delay(url: str, refused: InvalidStatus) -> float:
    response = refused.response
    retry_after = response.headers.get("retry-after")
    if response.status_code == 429 or response.status_code >= 500:
        return float(retry_after) if retry_after is not None and retry_after.isdecimal() else 0.0
    try:
        body: Any = json.loads(response.body or b"")
    except ValueError:
        body = None
    raise error_from_reply(url, response.status_code, body) from refused


def _raise_if_final(url: str, closed: ConnectionClosed) -> None:
    code = closed.rcvd.code if closed.rcvd is not None else None
    if code == SIGNED_OUT:
        body = {"error": {"code": "identity.not-signed-in", "message": "This token expired or was revoked"}}
        raise error_from_reply(url, 401, body) from closed
    if code == BAD_MESSAGE:
        raise unexpected_reply(url, closed) from closed


def quote_segment(text: str) -> str:
    """Quote a name for use as one segment of a path."""
    return quote(text, safe="")
