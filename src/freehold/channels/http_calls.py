"""Requests to the servers of channels: bounded in time and size, and what fails is told without addresses or secrets."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from freehold.channels.contract import ChannelAway, ChannelRefused

if TYPE_CHECKING:
    import httpx2

DOWNLOAD_TIMEOUT = 60.0
MAX_FILE = 64 * 1024 * 1024


class HttpCaller:
    """One client. It is made at the first request, because most gateways need none."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._http: httpx2.AsyncClient | None = None

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        content: bytes | None = None,
        timeout: float = 20.0,
    ) -> tuple[int, bytes]:
        """The status and the whole answer. Raises ChannelAway."""
        import httpx2

        given = {"content": content} if json is None else {"json": json}
        received = bytearray()
        try:
            async with (
                asyncio.timeout(timeout),
                self._client().stream(method, url, headers=dict(headers or {}), timeout=timeout, **given) as answer,
            ):
                async for part in answer.aiter_raw():
                    received += part
                    if len(received) > self._max_bytes:
                        raise ChannelAway(f"the answer is longer than {self._max_bytes} bytes")
        except (httpx2.HTTPError, OSError, TimeoutError, httpx2.InvalidURL) as error:
            raise ChannelAway(describe_failure(error)) from None  # its text may have the address, and that the token
        return answer.status_code, bytes(received)

    async def download(self, url: str, headers: Mapping[str, str], max_bytes: int) -> bytes:
        """A file. Raises ChannelAway, or ChannelRefused when it is too large or not there."""
        import httpx2

        received = bytearray()
        try:
            async with (
                asyncio.timeout(DOWNLOAD_TIMEOUT),
                self._client().stream("GET", url, headers=dict(headers), timeout=DOWNLOAD_TIMEOUT) as answer,
            ):
                if answer.status_code != 200:
                    raise ChannelRefused(f"the file cannot be fetched: {answer.status_code}")
                async for part in answer.aiter_raw():
                    received += part
                    if len(received) > max_bytes:
                        raise ChannelRefused(f"the file is larger than {max_bytes} bytes")
        except (httpx2.HTTPError, OSError, TimeoutError, httpx2.InvalidURL) as error:
            raise ChannelAway(describe_failure(error)) from None
        return bytes(received)

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    def _client(self) -> "httpx2.AsyncClient":
        from freehold.slots.bounded_http import make_client

        if self._http is None:
            self._http = make_client(MAX_FILE)
        return self._http


def describe_failure(error: BaseException) -> str:
    """What kind of failure it is. The texts of errors are not used: they may have an address with a token in it."""
    name = type(error).__name__
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return "no answer in time"
    if "Connect" in name or isinstance(error, ConnectionError):
        return "no connection"
    return f"the connection failed ({name})"
