"""The host names and origins of this gateway, and the address of the caller behind a proxy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from freehold.identity.sign_ins import CONTROL_CENTER_NAME

DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class SiteAddresses:
    """The Host headers that are served, each with the one Origin that may act there, and the trusted proxies.

    The pages of the control center are served at `page_hosts` only. The other hosts are for programs with a token.
    """

    origins: Mapping[str, str]
    page_hosts: frozenset[str]
    local_pages: str
    """The origin of the control center on this machine. A browser that comes to `localhost` is sent there."""
    proxies: tuple[IPv4Network | IPv6Network, ...]

    def is_proxy(self, address: str) -> bool:
        if not self.proxies:
            return False
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self.proxies)

    def find_caller(self, peer: str, forwarded_for: str) -> str:
        """The address that limits and logs use: the peer, or the rightmost untrusted hop when the peer is a trusted proxy."""
        if not self.is_proxy(peer):
            return peer
        for hop in reversed(forwarded_for.split(",")):
            candidate = hop.strip()
            if not self.is_proxy(candidate):
                try:
                    return str(ip_address(candidate))
                except ValueError:
                    return peer
        return peer

    def is_plain_http(self, host: str, peer: str, forwarded_proto: bytes | None) -> bool:
        """Whether a trusted proxy reports plain HTTP for a host that has https."""
        needs_https = self.origins[host].startswith("https:")
        return needs_https and forwarded_proto is not None and self.is_proxy(peer) and forwarded_proto != b"https"


def make_addresses(*, port: int, public_url: str | None, trusted_proxies: Iterable[str] = ()) -> SiteAddresses:
    """The addresses of a gateway on `port`: loopback by name and number, and its public address if it has one."""
    local_pages = origin_of(f"http://{CONTROL_CENTER_NAME}:{port}")
    pages = {local_pages, *([] if public_url is None else [origin_of(public_url)])}
    programs = {origin_of(f"http://{name}:{port}") for name in ("localhost", "127.0.0.1", "[::1]")}
    origins = {origin.partition("://")[2]: origin for origin in (*programs, *pages)}
    page_hosts = frozenset(origin.partition("://")[2] for origin in pages)
    return SiteAddresses(origins, page_hosts, local_pages, tuple(ip_network(proxy) for proxy in trusted_proxies))


def origin_of(url: str) -> str:
    """The origin as browsers write it: lower case, without the default port."""
    parts = urlsplit(url.lower())
    host = parts.hostname or ""
    name = f"[{host}]" if ":" in host else host
    is_default = parts.port is None or parts.port == DEFAULT_PORTS.get(parts.scheme)
    return f"{parts.scheme}://{name}" if is_default else f"{parts.scheme}://{name}:{parts.port}"


@lru_cache(maxsize=4096)
def rate_limit_key(address: str) -> str:
    """The key under which an address is limited: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped is not None else str(ip_network((int(parsed) >> 64 << 64, 64)))


_SEPARATORS = {b"cookie": b"; ", b"x-forwarded-for": b", "}


def read_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name. A header that must not be repeated becomes empty when it is, and empty is never valid."""
    headers: dict[bytes, bytes] = {}
    for name, value in raw:
        if name not in headers:
            headers[name] = value
        else:
            separator = _SEPARATORS.get(name)
            headers[name] = b"" if separator is None else headers[name] + separator + value
    return headers
