"""The host tools read HTTP as strictly as the proxy: what has no single reading is refused, and its connection ends."""

import json

import pytest
from tests.egress.framing_fuzz import MemoryStream

from freehold.agents.sessions.approval_store import PermissionAnswer
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.tools.server import HostToolServer


async def ask_nobody(_session: str, _request: PermissionRequest) -> PermissionAnswer | None:
    return None


async def send(*parts: bytes) -> bytes:
    """All that comes back for these bytes. `{token}` in them is replaced by the token of a session."""
    server = HostToolServer([], ask_nobody)
    token = server.token_for("one").encode()
    stream = MemoryStream(b"".join(parts).replace(b"{token}", token))
    await server.handle(stream)
    return stream.written


BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
HEAD = b"POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
PING = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


async def test_requests_on_one_connection_are_answered_one_by_one() -> None:
    answers = await send(PING, PING, PING.replace(b"Host: x", b"Connection: close"), PING)
    assert answers.count(b"HTTP/1.1 200 OK") == 3
    assert answers.lower().count(b"content-length: ") == 3


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /mcp HTTP/1.1\r\nContent-Length: 4\r\n\r\nPOST",
        b"GET /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nPOST\r\n0\r\n\r\n",
        HEAD + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\nPOST",
        HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"X: a\nContent-Length: 4\r\n\r\nPOST",
        HEAD + b"Content-Length : 4\r\n\r\nPOST",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nPOST\r\n0\r\nX: y\r\n\r\n",
    ],
)
async def test_a_request_with_two_readings_ends_its_connection(request_bytes: bytes) -> None:
    answers = await send(PING, request_bytes, PING)
    assert answers.count(b"HTTP/1.1 200 OK") == 1
    assert answers.count(b"HTTP/1.1 400 Bad Request") == 1
    assert answers.count(b"HTTP/1.1") == 2


async def test_a_client_that_hangs_up_at_any_byte_calls_nothing() -> None:
    for cut in range(len(PING)):
        assert await send(PING[:cut]) == b""
