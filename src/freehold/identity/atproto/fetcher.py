"""Fetches from servers that strangers name. Nothing inside this network can be reached by way of it.

The name is resolved once, every address must be global, and the connection goes to that very address, with the
certificate checked for the name. No redirects, no proxies from the environment, no compression, and limits on size
and time.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlencode, urlsplit

import httpx2

from freehold.identity.atproto.syntax import is_hostname

LARGEST = 256 * 1024
DEADLINE = 10.0

Failure = Literal["unreachable", "address", "url", "status", "redirect", "media-type", "size", "json"]


class FetchError(Exception):
    """`failure` decides what the owner is told; the text is for the log."""

    def __init__(self, failure: Failure, reason: str, *, host: str) -> None:
        super().__init__(reason)
        self.failure = failure
        self.host = host


@dataclass(frozen=True)
class Network:
    """Exceptions for tests and development, given where a `Fetcher` is made and nowhere else.

    `routes` sends a name to an address instead of resolving it; `plain` lists origins that may be spoken to without
    TLS; `authority` is one more certificate authority; `nameserver` answers for DNS TXT.
    """

    routes: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    plain: frozenset[str] = frozenset()
    authority: Path | None = None
    nameserver: tuple[str, int] | None = None


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    host: str

    def json(self) -> dict[str, object]:
        """The body as a JSON object, when the server says that it is one."""
        kind = self.headers.get("content-type", "").split(";")[0].strip().lower()
        if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            raise FetchError("media-type", f"the answer is {kind[:80]!r}, not JSON", host=self.host)
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise FetchError("json", f"the answer is not JSON: {type(error).__name__}", host=self.host) from None
        if not isinstance(document, dict):
            raise FetchError("json", "the answer is not a JSON object", host=self.host)
        return document


class Fetcher:
    """One for the life of a sign-in service. Keeps no connection and no cookie between calls."""

    def __init__(self, network: Network | None = None, *, deadline: float = DEADLINE, largest: int = LARGEST) -> None:
        self.network = network or Network()
        self._deadline = deadline
        self._largest = largest
        self._tls = ssl.create_default_context()
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.network.authority is not None:
            self._tls.load_verify_locations(self.network.authority)

    async def get_json(self, url: str) -> dict[str, object]:
        """The JSON object at this address; anything but a plain 200 is refused."""
        answer = await self.request("GET", url)
        if 300 <= answer.status < 400:
            raise FetchError("redirect", f"{url} redirects, which is not followed", host=answer.host)
        if answer.status >= 500:
            raise FetchError("unreachable", f"{url} answered {answer.status}", host=answer.host)
        if answer.status != 200:
            raise FetchError("status", f"{url} answered {answer.status}", host=answer.host)
        return answer.json()

    async def post_form(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        content = urlencode(form).encode()
        return await self.request(
            "POST", url, {**headers, "content-type": "application/x-www-form-urlencoded"}, content
        )

    async def request(
        self, method: Literal["GET", "POST"], url: str, headers: Mapping[str, str] | None = None, content: bytes = b""
    ) -> Answer:
        parts = self._check_url(url)
        host = parts.hostname or ""
        try:
            # Each step (connect, TLS, each read) has the deadline; all together twice that. Cancelled from outside in
            # the middle of a TLS handshake, the HTTP library would leave the socket open.
            async with asyncio.timeout(2 * self._deadline):
                address, port = await self._resolve(host, parts.port or (80 if parts.scheme == "http" else 443))
                return await self._exchange(method, parts, address, port, headers or {}, content)
        except (TimeoutError, httpx2.TimeoutException):
            raise FetchError("unreachable", f"{host} did not answer within {self._deadline:g} s", host=host) from None
        except (httpx2.HTTPError, ssl.SSLError, OSError) as error:
            words = f"{type(error).__name__}: {error}"
            raise FetchError("unreachable", f"{host} could not be reached: {words[:200]}", host=host) from None

    def _check_url(self, url: str) -> SplitResult:
        """https to a DNS name; no user name, no fragment, no address in digits."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise FetchError("url", f"{url[:200]!r} is not an address", host="") from None
        host = parts.hostname or ""
        if any(ord(character) <= 32 or ord(character) >= 127 for character in url):
            raise FetchError("url", f"{url[:200]!a} holds characters that an address cannot", host=host)
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
            # One private address among public ones is how rebinding looks; the name is refused as a whole.
            if not is_global(address):
                raise FetchError("address", f"{host} resolves to {address}, which is not public", host=host)
        return addresses[0], port

    async def _exchange(
        self, method: str, parts: SplitResult, address: str, port: int, headers: Mapping[str, str], content: bytes
    ) -> Answer:
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
                verify=self._tls, trust_env=False, follow_redirects=False, timeout=self._deadline
            ) as client,
            client.stream(
                method, target, headers=sent, content=content or None, extensions={"sni_hostname": host}
            ) as response,
        ):
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise FetchError("media-type", f"{host} compressed its answer unasked", host=host)
            body = bytearray()
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > self._largest:
                    raise FetchError("size", f"{host} sent more than {self._largest} bytes", host=host)
            answered = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status_code, answered, bytes(body), host)


_NAT64 = IPv6Network("64:ff9b::/96")


def is_global(text: str) -> bool:
    """Whether an address is on the public internet, whatever it is wrapped in."""
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
