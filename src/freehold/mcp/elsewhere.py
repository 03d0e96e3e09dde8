"""A server at an address, over streamable HTTP and through egress. Its key is added here and is never inside."""

import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from freehold.egress.host_client import open_host_client
from freehold.errors import FreeholdError
from freehold.mcp.protocol import CALL_TIMEOUT, MAX_MESSAGE, MAX_MESSAGES, VERSION, Json, decode_message
from freehold.mcp.section import McpServerSection

if TYPE_CHECKING:
    import httpx2

    from freehold.egress.service import EgressService

MAX_SESSION = 200


class ElsewhereTransport:
    """Each message is a request. What comes back with it is received afterwards; a server sends nothing by itself."""

    def __init__(self, name: str, url: str, http: "httpx2.AsyncClient", key: str | None) -> None:
        self._name = name
        self._url = url
        self._http = http
        self._key = key
        self._session: str | None = None
        self._received: deque[Json] = deque()

    async def send(self, message: Json) -> None:
        import httpx2

        try:
            async with self._http.stream(
                "POST", self._url, content=json.dumps(message).encode(), headers=self._headers()
            ) as response:
                await self._read(response)
        except httpx2.HTTPError as error:
            raise FreeholdError(
                "mcp.unreachable",
                f"The MCP server {self._name} cannot be reached: {str(error)[:300] or type(error).__name__}",
                hint="freehold egress shows whether its host is allowed",
            ) from error

    async def receive(self) -> Json:
        if not self._received:
            raise FreeholdError("mcp.bad-answer", f"The MCP server {self._name} did not answer")
        return self._received.popleft()

    def _headers(self) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "accept-encoding": "identity",
            "mcp-protocol-version": VERSION,
        }
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        return headers if self._session is None else {**headers, "mcp-session-id": self._session}

    async def _read(self, response: "httpx2.Response") -> None:
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > MAX_MESSAGE:
                raise FreeholdError("mcp.too-large", f"The MCP server {self._name} sent more than {MAX_MESSAGE} bytes")
        text = body.decode(errors="replace")
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
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            lines = [line[5:] for line in text.splitlines() if line.startswith("data:")][:MAX_MESSAGES]
            self._received.extend(decode_message(self._name, line) for line in lines if line.strip())
        elif text.strip():
            self._received.append(decode_message(self._name, text))


@asynccontextmanager
async def open_elsewhere(
    egress: "EgressService",
    name: str,
    section: McpServerSection,
    key: str | None,
    who: str,
) -> AsyncIterator[ElsewhereTransport]:
    """The host that the manifest names is allowed for this connection alone, unless a rule denies it."""
    assert section.url is not None  # the manifest is checked
    async with open_host_client(egress, f"mcp-{name}", section.url, who=who, timeout=CALL_TIMEOUT) as client:
        yield ElsewhereTransport(name, section.url, client.http, key)
