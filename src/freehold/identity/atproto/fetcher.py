"""HTTP requests to servers that others name. They never reach a private network (no SSRF).

A name is resolved once, all its addresses must be public, and the connection goes to the resolved address, with the
certificate checked for the name. There are no redirects, no proxies from the environment and no compression, and size
and time are limited.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlencode, urlsplit

import httpx2

from freehold.identity.atproto.syntax import is_hostname

MAX_BODY_BYTES = 256 * 1024
FETCH_TIMEOUT = 10.0

Failure = Literal["unreachable", "address", "url", "status", "redirect", "media-type", "size", "json"]


class FetchError(Exception):
    """`failure` selects the message for the owner; the text is for the log."""

    def __init__(self, failure: Failure, reason: str, *, host: str) -> None:
        super().__init__(reason)
        self.failure = failure
        self.host = host


@dataclass(frozen=True)
class NetworkOverrides:
    """Exceptions for tests and development.

    `routes` maps a host name to an address instead of resolving it. `plain` lists origins that may be used without
    TLS. `authority` is an additional certificate authority. `nameserver` answers DNS TXT queries.
    """

    routes: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    plain: frozenset[str] = frozenset()
    authority: Path | None = None
    nameserver: tuple[str, int] | None = None


@dataclass(frozen=True)
class FetchResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes
    host: str

    def json(self) -> dict[str, object]:
        """The body as a JSON object. Raises FetchError when the media type or the body is not JSON."""
        kind = self.headers.get("content-type", "").split(";")[0].strip().lower()
        if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            raise FetchError("media-type", f"the reply has media type {kind[:80]!r}, not JSON", host=self.host)
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise FetchError("json", f"the reply is not valid JSON: {type(error).__name__}", host=self.host) from None
        if not isinstance(document, dict):
            raise FetchError("json", "the reply is not a JSON object", host=self.host)
        return document


class Fetcher:
    """Keeps no connection and no cookie between calls."""

    def __init__(
        self,
        network: NetworkOverrides | None = None,
        *,
        timeout: float = FETCH_TIMEOUT,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        self.network = network or NetworkOverrides()
        self._timeout = timeout
        self._max_body_bytes = max_body_bytes

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Made at the first request: reading the authorities takes tens of milliseconds, and most gateways fetch nothing."""
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.network.authority is not None:
            context.load_verify_locations(self.network.authority)
        return context

    async def get_json(self, url: str) -> dict[str, object]:
        """The JSON object at this URL. Raises FetchError for each status but 200."""
        answer = await self.request("GET", url)
        if 300 <= answer.status < 400:
            raise FetchError("redirect", f"{url} redirects; redirects are not followed", host=answer.host)
        if answer.status >= 500:
            raise FetchError("unreachable", f"{url} answered {answer.status}", host=answer.host)
        if answer.status != 200:
            raise FetchError("status", f"{url} answered {answer.status}", host=answer.host)
        return answer.json()

    async def post_form(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> FetchResponse:
        content = urlencode(form).encode()
        return await self.request(
            "POST", url, {**headers, "content-type": "application/x-www-form-urlencoded"}, content
        )

    async def request(
        self, method: Literal["GET", "POST"], url: str, headers: Mapping[str, str] | None = None, content: bytes = b""
    ) -> FetchResponse:
        parts = self._check_url(url)
        host = parts.hostname or ""
        try:
            # Each step (connect, TLS, each read) has `timeout`, and all together have twice that. A cancellation in the
            # middle of a TLS handshake would make the HTTP library leave the socket open.
            async with asyncio.timeout(2 * self._timeout):
                address, port = await self._resolve(host, parts.port or (80 if parts.scheme == "http" else 443))
                return await self._send(method, parts, address, port, headers or {}, content)
        except (TimeoutError, httpx2.TimeoutException):
            raise FetchError("unreachable", f"{host} did not answer within {self._timeout:g} s", host=host) from None
        except (httpx2.HTTPError, ssl.SSLError, OSError) as error:
            cause = f"{type(error).__name__}: {error}"
            raise FetchError("unreachable", f"{host} could not be reached: {cause[:200]}", host=host) from None

    def _check_url(self, url: str) -> SplitResult:
        """https to a DNS name, without a user name or a fragment. IP addresses are refused."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise FetchError("url", f"{url[:200]!r} is not a valid URL", host="") from None
        host = parts.hostname or ""
        if any(ord(character) <= 32 or ord(character) >= 127 for character in url):
            raise FetchError("url", f"{url[:200]!a} contains characters that a URL cannot have", host=host)
        if "@" in parts.netloc or parts.fragment or "\\" in url:
            raise FetchError("url", f"{url[:200]!r} has a user name, a fragment or a backslash", host=host)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin in self.network.plain:
            return parts
        if parts.scheme != "https" or port == 0:
            raise FetchError("url", f"{url[:200]!r} is not https", host=host)
        if not is_hostname(host):
            raise FetchError("address", f"{host[:200]!r} is not the name of a public host", host=host)
        return parts

    async def _resolve(self, host: str, port: int) -> tuple[str, int]:
        if host in self.network.routes:
            return self.network.routes[host]
        if f"http://{host}:{port}" in self.network.plain:
            return "127.0.0.1", port
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
            )
        except (socket.gaierror, UnicodeError) as error:
            raise FetchError("unreachable", f"{host} has no address: {error}", host=host) from None
        addresses = [str(entry[4][0]) for entry in found]
        for address in addresses:
            # DNS rebinding mixes private and public addresses: one private address refuses the name.
            if not is_global(address):
                raise FetchError("address", f"{host} resolves to {address}, which is not public", host=host)
        return addresses[0], port

    async def _send(
        self, method: str, parts: SplitResult, address: str, port: int, headers: Mapping[str, str], content: bytes
    ) -> FetchResponse:
        host = parts.hostname or ""
        shown = f"[{address}]" if ":" in address else address
        target = f"{parts.scheme}://{shown}:{port}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")
        sent = {
            "host": parts.netloc,
            "accept": "application/json",
            "accept-encoding": "identity",
            "user-agent": "freehold",
            "connection": "close",
            **headers,
        }
        async with (
            httpx2.AsyncClient(
                verify=self._tls, trust_env=False, follow_redirects=False, timeout=self._timeout
            ) as client,
            client.stream(
                method, target, headers=sent, content=content or None, extensions={"sni_hostname": host}
            ) as response,
        ):
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise FetchError("media-type", f"{host} sent a compressed reply", host=host)
            body = bytearray()
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > self._max_body_bytes:
                    raise FetchError("size", f"{host} sent more than {self._max_body_bytes} bytes", host=host)
            answered = {name.lower(): value for name, value in response.headers.items()}
            return FetchResponse(response.status_code, answered, bytes(body), host)


_NAT64 = IPv6Network("64:ff9b::/96")


def is_global(text: str) -> bool:
    """Whether an address is on the public internet. IPv4 addresses embedded in IPv6 are unpacked first."""
    try:
        address: IPv4Address | IPv6Address = ip_address(text.split("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        if "%" in text or address.is_site_local:
            return False
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if address.teredo is not None:
            return False
        if inner is not None:
            address = inner
    return address.is_global and not address.is_multicast and not address.is_reserved and not address.is_unspecified
