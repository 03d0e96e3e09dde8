"""A server at an address, over streamable HTTP and through egress. Its key is added here and is never inside."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from freehold.builtin.event_stream import EventReader
from freehold.egress.host_client import open_host_client
from freehold.errors import FreeholdError
from freehold.mcp.protocol import CALL_TIMEOUT, MAX_MESSAGE, VERSION, Json, decode_message
from freehold.mcp.section import McpServerSection

if TYPE_CHECKING:
    import httpx2

    from freehold.egress.service import EgressService

FindKey = Callable[[], Awaitable[str | None]]
"""The key of the server as it is now."""
MAX_SESSION = 200
END_TIMEOUT = 0.2
"""Seconds that a stream may go on after its answer. A connection whose stream has ended serves the next request too."""


class ElsewhereTransport:
    """Each message is a request of HTTP, with the key as it is then."""

    def __init__(self, name: str, url: str, http: "httpx2.AsyncClient", find_key: FindKey) -> None:
        self._name = name
        self._url = url
        self._http = http
        self._find_key = find_key
        self._session: str | None = None
        self._has_ended = False

    async def send(self, message: Json) -> None:
        async with self._post(message):
            pass  # that it was taken is enough

    @asynccontextmanager
    async def ask(self, message: Json) -> AsyncIterator[AsyncIterator[Json]]:
        import httpx2

        async with self._post(message) as response, aclosing(self._read_messages(response)) as messages:
            yield messages
            with suppress(TimeoutError, FreeholdError, httpx2.HTTPError):
                async with asyncio.timeout(END_TIMEOUT):
                    async for _ in messages:
                        pass

    def end(self) -> None:
        self._has_ended = True

    @asynccontextmanager
    async def _post(self, message: Json) -> AsyncIterator["httpx2.Response"]:
        import httpx2

        try:
            headers = await self._make_headers()
            if self._has_ended:
                raise FreeholdError("mcp.ended", f"The connection to the MCP server {self._name} has ended")
            async with self._http.stream(
                "POST", self._url, content=json.dumps(message).encode(), headers=headers
            ) as response:
                self._check(response)
                yield response
        except httpx2.HTTPError as error:
            raise FreeholdError(
                "mcp.unreachable",
                f"The MCP server {self._name} cannot be reached: {str(error)[:300] or type(error).__name__}",
                hint="freehold egress shows whether its host is allowed",
            ) from error

    async def _make_headers(self) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "accept-encoding": "identity",
            "mcp-protocol-version": VERSION,
        }
        if (key := await self._find_key()) is not None:
            headers["authorization"] = f"Bearer {key}"
        return headers if self._session is None else {**headers, "mcp-session-id": self._session}

    def _check(self, response: "httpx2.Response") -> None:
        if response.status_code == 401:
            raise FreeholdError(
                "mcp.denied",
                f"The MCP server {self._name} wants a key",
                hint=f"Set key or oauth in [mcp.{self._name}]; with oauth, sign in: freehold mcp login {self._name}",
            )
        if response.status_code >= 300:
            raise FreeholdError("mcp.bad-answer", f"The MCP server {self._name} answered {response.status_code}")
        given = response.headers.get("mcp-session-id")
        if given is not None and len(given) <= MAX_SESSION and given.isascii() and given.isprintable():
            self._session = given

    async def _read_messages(self, response: "httpx2.Response") -> AsyncGenerator[Json]:
        """From the body or, as they come, from a stream of events."""
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            reader = EventReader()
            async for piece in self._pieces(response):
                for text in reader.feed(piece):
                    yield decode_message(self._name, text)
        else:
            body = b"".join([piece async for piece in self._pieces(response)])
            if body.strip():
                yield decode_message(self._name, body.decode(errors="replace"))

    async def _pieces(self, response: "httpx2.Response") -> AsyncIterator[bytes]:
        size = 0
        async for piece in response.aiter_raw():
            size += len(piece)
            if size > MAX_MESSAGE:
                raise FreeholdError("mcp.too-large", f"The MCP server {self._name} sent more than {MAX_MESSAGE} bytes")
            yield piece


@asynccontextmanager
async def open_elsewhere(
    egress: "EgressService",
    name: str,
    section: McpServerSection,
    find_key: FindKey,
    who: str,
) -> AsyncIterator[ElsewhereTransport]:
    """The host that the manifest names is allowed for this connection alone, unless a rule denies it."""
    assert section.url is not None  # the manifest is checked
    async with open_host_client(egress, f"mcp-{name}", section.url, who=who, timeout=CALL_TIMEOUT) as client:
        transport = ElsewhereTransport(name, section.url, client.http, find_key)
        try:
            yield transport
        finally:
            transport.end()
