"""The connection to one Freehold: requests, and one topic of its socket at a time."""

import json
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import httpx2
from pydantic import TypeAdapter, ValidationError
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from freehold.client.pauses import async_pause
from freehold.client.problems import answered, misunderstood, refusal, unreachable
from freehold.errors import FreeholdError

FIRST_RETRY = 0.1
LONGEST_RETRY = 10.0
SIGNED_OUT = 4401
WRONG_WORDS = 4400

# At `debug` it writes every header of the handshake, the token among them.
SILENT = logging.getLogger("freehold.client.socket")
SILENT.setLevel(logging.WARNING)

T = TypeVar("T")


@dataclass(frozen=True)
class Message:
    """Something of a topic. `resync` says that more was missed than is remembered: list anew, then go on."""

    kind: Literal["event", "delta", "resync"]
    seq: int
    data: Any = None


class AsyncConnection:
    """Requests to one Freehold. The token is sent to no other address: redirects are not followed."""

    def __init__(self, url: str, token: str, timeout: float) -> None:
        self.url = url
        self._timeout = timeout
        self._headers = {"authorization": f"Bearer {token}"}
        # Proxies and passwords of the environment are none of ours.
        self._http = httpx2.AsyncClient(base_url=url, headers=self._headers, timeout=timeout, trust_env=False)

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, path: str, answer: type[T], query: Mapping[str, Any] | None = None) -> T:
        return await self._ask("GET", path, answer, query=query)

    async def post(self, path: str, answer: type[T], body: Mapping[str, Any]) -> T:
        return await self._ask("POST", path, answer, body=body)

    async def delete(self, path: str, answer: type[T], query: Mapping[str, Any] | None = None) -> T:
        return await self._ask("DELETE", path, answer, query=query)

    async def _ask(
        self,
        method: str,
        path: str,
        answer: type[T],
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> T:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        try:
            response = await self._http.request(method, path, params=given, json=body)
        except httpx2.TransportError as error:
            raise unreachable(self.url, error, self._timeout) from error
        found = answered(self.url, response)
        try:
            return TypeAdapter(answer).validate_python(found)
        except ValidationError as error:
            raise misunderstood(self.url, error) from error

    async def follow(self, topic: str, after: int | None) -> AsyncIterator[Message]:
        """What happens in a topic, each numbered message once and in order, across lost connections.

        Ends only by an error that trying again would not mend.
        """
        at = after
        wait = FIRST_RETRY
        while True:
            try:
                async with connect(
                    f"ws{self.url.removeprefix('http')}/v1/socket",
                    additional_headers=self._headers,
                    open_timeout=self._timeout,
                    compression=None,
                    proxy=None,
                    max_size=None,
                    logger=SILENT,
                ) as socket:
                    await socket.send(json.dumps(_subscription(topic, at)))
                    async for text in socket:
                        wait = FIRST_RETRY
                        message = self._read(text)
                        if message is None or (message.kind == "event" and at is not None and message.seq <= at):
                            continue
                        if message.kind == "subscribed":
                            at = message.seq if at is None else at
                            continue
                        at = at if message.kind == "delta" else message.seq
                        yield Message(message.kind, message.seq, message.data)
            except InvalidStatus as refused:
                wait = max(wait, self._before_next_try(refused))
            except ConnectionClosed as closed:
                self._unless_final(closed)
            except (OSError, TimeoutError, InvalidHandshake) as error:
                if (problem := unreachable(self.url, error, self._timeout)).code == "client.tls":
                    raise problem from error
            await async_pause(wait)
            wait = min(LONGEST_RETRY, wait * 2)

    def _read(self, text: str | bytes) -> "_Word | None":
        try:
            word = json.loads(text)
            kind = word["type"]
            if kind == "error":
                raise FreeholdError(word["code"], word["message"])
            if kind in ("event", "delta", "resync", "subscribed"):
                return _Word(kind, int(word.get("seq", 0)), word.get("data"))
        except (ValueError, KeyError, TypeError) as error:
            raise misunderstood(self.url, error) from error
        return None

    def _before_next_try(self, refused: InvalidStatus) -> float:
        """How long to wait before asking again; raises what asking again would not change."""
        response = refused.response
        retry_after = response.headers.get("retry-after")
        if response.status_code == 429 or response.status_code >= 500:
            return float(retry_after) if retry_after is not None and retry_after.isdecimal() else 0.0
        try:
            body: Any = json.loads(response.body or b"")
        except ValueError:
            body = None
        raise refusal(self.url, response.status_code, body) from refused

    def _unless_final(self, closed: ConnectionClosed) -> None:
        """Within `except ConnectionClosed`: goes on when another connection may do better."""
        code = closed.rcvd.code if closed.rcvd is not None else None
        if code == SIGNED_OUT:
            body = {"error": {"code": "identity.not-signed-in", "message": "This token has been revoked"}}
            raise refusal(self.url, 401, body) from closed
        if code == WRONG_WORDS:
            raise misunderstood(self.url, closed) from closed


@dataclass(frozen=True)
class _Word:
    kind: Literal["event", "delta", "resync", "subscribed"]
    seq: int
    data: Any


def _subscription(topic: str, after: int | None) -> dict[str, Any]:
    word: dict[str, Any] = {"type": "subscribe", "topic": topic}
    return word if after is None else {**word, "after": after}


def segment(text: str) -> str:
    """A name as one part of a path."""
    return quote(text, safe="")
