"""An HTTP client for other people's servers: whatever they answer, it costs this process little memory."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from freehold.tls_trust import trust_system

# It would write the address of every request into the log, and some addresses have a token in them.
logging.getLogger("httpx2").setLevel(logging.WARNING)

DEFAULT_LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20)


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """Ends an answer that is longer than `max_bytes`, or that would have to be unpacked, with a ReadError."""

    def __init__(self, max_bytes: int, limits: httpx2.Limits = DEFAULT_LIMITS) -> None:
        super().__init__(limits=limits, verify=trust_system())
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await super().handle_async_request(request)
        if answer.headers.get("content-encoding", "identity").strip().lower() != "identity":
            await answer.aclose()
            raise httpx2.ReadError("the answer is packed, which was not asked for", request=request)
        assert isinstance(answer.stream, httpx2.AsyncByteStream)
        answer.stream = _BoundedStream(answer.stream, self._max_bytes, request)
        return answer


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: int, request: httpx2.Request) -> None:
        self._inner = inner
        self._left = max_bytes
        self._max_bytes = max_bytes
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._left -= len(part)
            if self._left < 0:
                raise httpx2.ReadError(f"the answer is longer than {self._max_bytes} bytes", request=self._request)
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


def make_client(max_bytes: int, limits: httpx2.Limits = DEFAULT_LIMITS, **more: Any) -> httpx2.AsyncClient:
    """No proxies or passwords from the environment, and redirects are not followed."""
    headers = {"accept-encoding": "identity", **more.pop("headers", {})}
    transport = BoundedTransport(max_bytes, limits)
    return httpx2.AsyncClient(transport=transport, headers=headers, trust_env=False, **more)
