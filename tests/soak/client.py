"""The API as a client uses it that does not give up: an answer, or nothing when the connection was lost."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

REPLY_TIMEOUT = 20.0
RETRY_INTERVAL = 0.3


@dataclass(frozen=True)
class Reply:
    """A complete answer of the API."""

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def code(self) -> str:
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return str(error.get("code")) if isinstance(error, dict) else ""


class SoakClient:
    """`replies` counts the answers. An answer that says that there is a bug is kept in `bugs`."""

    def __init__(self, url: str, token: str) -> None:
        self._headers = {"authorization": f"Bearer {token}"}
        self._socket_address = f"{url.replace('http:', 'ws:', 1)}/v1/socket"
        self._http = httpx2.AsyncClient(base_url=url, headers=self._headers, trust_env=False, timeout=REPLY_TIMEOUT)
        self.replies: Counter[str] = Counter()
        self.bugs: list[str] = []

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(self, method: str, path: str, body: Any = None, content: bytes | None = None) -> Reply | None:
        """The answer, or None when it is not known whether the request was carried out."""
        try:
            answer = await self._http.request(method, path, json=body, content=content)
        except httpx2.HTTPError as error:
            self.replies[f"{method} no answer ({type(error).__name__})"] += 1
            return None
        try:
            reply = Reply(answer.status_code, answer.json())
        except ValueError:
            reply = Reply(answer.status_code, None)
        self.replies[f"{method} {reply.status} {reply.code}".strip()] += 1
        if reply.status == 500:
            self.bugs.append(f"{method} {path} was answered with 500: {answer.text[:300]}")
        return reply

    async def ask_until_ok(self, method: str, path: str, body: Any = None) -> Any:
        """Ask again until it is done. Only for a request that may be repeated."""
        while True:
            reply = await self.ask(method, path, body)
            if reply is not None and reply.ok:
                return reply.body
            await asyncio.sleep(RETRY_INTERVAL)

    @asynccontextmanager
    async def events(self, session: str, after: int) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """The events after a number, until the connection is lost."""
        async with connect(
            self._socket_address, additional_headers=self._headers, proxy=None, compression=None, ping_timeout=5
        ) as socket:
            await socket.send(json.dumps({"type": "subscribe", "topic": f"session:{session}", "after": after}))

            async def receive() -> AsyncIterator[dict[str, Any]]:
                async for message in socket:
                    decoded = json.loads(message)
                    if decoded["type"] == "event":
                        yield decoded["data"]
                    elif decoded["type"] in ("resync", "error"):
                        raise ConnectionError(str(decoded))

            yield receive()


CONNECTION_LOST = (OSError, WebSocketException, TimeoutError, EOFError)
"""What a socket raises when the gateway has ended, or has never answered."""
