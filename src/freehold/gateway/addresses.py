"""Which names and origins are ours, and who is really calling."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Addresses:
    """The Host headers we serve, the Origins that may act, and the proxies whose word counts."""

    hosts: frozenset[str]
    origins: frozenset[str]
    proxies: tuple[IPv4Network | IPv6Network, ...]

    def is_proxy(self, address: str) -> bool:
        if not self.proxies:
            return False
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self.proxies)

    def caller(self, peer: str, forwarded_for: str | None) -> str:
        """The address to hold to account: the peer, or what a proxy of ours says, read from the right."""
        if forwarded_for is None or not self.is_proxy(peer):
            return peer
        for hop in reversed(forwarded_for.split(",")):
            candidate = hop.strip()
            if not self.is_proxy(candidate):
                try:
                    return str(ip_address(candidate))
                except ValueError:
                    return peer
        return peer


def serve_at(*, port: int, public_url: str | None, trusted_proxies: Iterable[str] = ()) -> Addresses:
    """What a gateway on `port` answers to: loopback by name and number, and its public address when it has one."""
    names = ("localhost", "127.0.0.1", "[::1]")
    hosts = {f"{name}:{port}" for name in names}
    origins = {f"http://{name}:{port}" for name in names}
    if public_url is not None:
        parts = urlsplit(public_url)
        hosts.add(parts.netloc.lower())
        origins.add(f"{parts.scheme}://{parts.netloc.lower()}")
    return Addresses(frozenset(hosts), frozenset(origins), tuple(ip_network(proxy) for proxy in trusted_proxies))


def single(headers: Mapping[bytes, list[bytes]], name: bytes) -> str | None:
    """The one value of a header that must not come twice; None when absent, "" (never valid) when doubled."""
    values = headers.get(name)
    if values is None:
        return None
    return values[0].decode("latin-1") if len(values) == 1 else ""
