"""Which names and origins are ours, and who is really calling."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Addresses:
    """The Host headers we serve, each with the one Origin that may act there, and the proxies whose word counts."""

    origins: Mapping[str, str]
    proxies: tuple[IPv4Network | IPv6Network, ...]

    def is_proxy(self, address: str) -> bool:
        if not self.proxies:
            return False
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self.proxies)

    def caller(self, peer: str, forwarded_for: str) -> str:
        """The address to hold to account: the peer, or what a proxy of ours says, read from the right."""
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

    def is_plain(self, host: str, peer: str, forwarded_proto: bytes | None) -> bool:
        """Whether a proxy of ours says that a name of ours that has https was asked for without it."""
        needs_https = self.origins[host].startswith("https:")
        return needs_https and forwarded_proto is not None and self.is_proxy(peer) and forwarded_proto != b"https"


def serve_at(*, port: int, public_url: str | None, trusted_proxies: Iterable[str] = ()) -> Addresses:
    """What a gateway on `port` answers to: loopback by name and number, and its public address when it has one."""
    urls = [f"http://{name}:{port}" for name in ("localhost", "127.0.0.1", "[::1]")]
    if public_url is not None:
        urls.append(public_url)
    origins = {}
    for url in urls:
        origin = origin_of(url)
        origins[origin.partition("://")[2]] = origin
    return Addresses(origins, tuple(ip_network(proxy) for proxy in trusted_proxies))


def origin_of(url: str) -> str:
    """The origin as browsers spell it: lower case, and no port where it is the usual one."""
    parts = urlsplit(url.lower())
    host = parts.hostname or ""
    name = f"[{host}]" if ":" in host else host
    usual = parts.port is None or parts.port == DEFAULT_PORTS.get(parts.scheme)
    return f"{parts.scheme}://{name}" if usual else f"{parts.scheme}://{name}:{parts.port}"


@lru_cache(maxsize=4096)
def crowd_of(address: str) -> str:
    """Who shares a limit: an IPv4 address, or the /64 that one IPv6 subscriber has all to themselves."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped is not None else str(ip_network((int(parsed) >> 64 << 64, 64)))


_LISTS = {b"cookie": b"; ", b"x-forwarded-for": b", "}


def read_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name. One that must not come twice is empty when it does, which is never valid."""
    headers: dict[bytes, bytes] = {}
    for name, value in raw:
        if name not in headers:
            headers[name] = value
        else:
            between = _LISTS.get(name)
            headers[name] = b"" if between is None else headers[name] + between + value
    return headers
