"""Resolves a name once, checks its addresses, and connects to a checked address."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address, ip_network

from freehold.egress.names import IPAddress
from freehold.egress.stream import SocketStream, connect_socket
from freehold.errors import FreeholdError

Resolver = Callable[[str], Awaitable[Sequence[IPAddress]]]
"""Gives the addresses of a normalised name. Raises `egress.no-address` when there is none."""

AddressCheck = Callable[[IPAddress], str | None]
"""Why an address is refused, or None. Tests replace it to reach servers on loopback by name."""

MAX_ADDRESSES = 8
DIAL_STAGGER = 0.25
LOOKUP_TIMEOUT = 8.0
SECOND_FAMILY_TIMEOUT = 0.5

# Listed here because `is_global` differs between versions of Python.
_REFUSED: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier-grade NAT"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "metadata"),  # of Azure, at a public address
    ("169.254.0.0/16", "link-local or metadata"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("fc00::/7", "private or metadata"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
    ("2001::/32", "Teredo"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "documentation"),
    ("2002::/16", "6to4"),
    ("3fff::/20", "documentation"),
)
_REFUSED_4 = tuple((net, why) for text, why in _REFUSED if isinstance(net := ip_network(text), IPv4Network))
_REFUSED_6 = tuple((net, why) for text, why in _REFUSED if isinstance(net := ip_network(text), IPv6Network))
_GLOBAL_6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def why_refused(address: IPAddress) -> str | None:
    """The kind of an address that is not public, or None for a public one."""
    if isinstance(address, IPv4Address):
        return next((why for net, why in _REFUSED_4 if address in net), None)
    if address.ipv4_mapped is not None:
        return "IPv4-mapped"
    if address in _NAT64:
        # On an IPv6-only machine every IPv4 host has such an address, so it is checked as IPv4.
        embedded = why_refused(IPv4Address(int(address) & 0xFFFFFFFF))
        return f"NAT64 of a {embedded} address" if embedded else None
    named = next((why for net, why in _REFUSED_6 if address in net), None)
    return named or (None if address in _GLOBAL_6 else "reserved")


def why_refused_here(address: IPAddress) -> str | None:
    """`why_refused`, and this machine's own public addresses, which may lead to services for local use only."""
    return why_refused(address) or ("this machine's own" if _is_own(address) else None)


def _is_own(address: IPAddress) -> bool:
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        # Connecting a datagram socket sends nothing. For one of our own addresses the kernel chooses the same address as source.
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return str(probe.getsockname()[0]) == str(address)
    except OSError:
        return False


async def resolve_by_dns(name: str, servers: Sequence[tuple[str, int]] = ()) -> Sequence[IPAddress]:
    """Asks DNS for the absolute name, without search domains and hosts file.

    `servers` are used instead of those of /etc/resolv.conf.
    """
    from dns.asyncresolver import Resolver as DnsResolver
    from dns.exception import DNSException
    from dns.nameserver import Do53Nameserver
    from dns.rdatatype import AAAA, A, RdataType

    async def ask(kind: RdataType) -> list[IPAddress]:
        try:
            answer = await resolver.resolve(f"{name}.", kind, search=False, raise_on_no_answer=False)
        except (DNSException, OSError):
            return []
        return [ip_address(record.to_text()) for record in answer]

    try:
        resolver = DnsResolver(configure=not servers)
    except (DNSException, OSError) as error:
        raise no_address(name, "this machine has no resolver") from error
    if servers:
        resolver.nameservers = [Do53Nameserver(address, port) for address, port in servers]
    resolver.lifetime = LOOKUP_TIMEOUT
    async with asyncio.TaskGroup() as both:
        six, four = both.create_task(ask(AAAA)), both.create_task(ask(A))
        done, _ = await asyncio.wait((six, four), return_when=asyncio.FIRST_COMPLETED)
        if any(task.result() for task in done):
            # Some networks answer for one family and never answer for the other.
            await asyncio.wait((six, four), timeout=SECOND_FAMILY_TIMEOUT)
        else:
            await asyncio.wait((six, four))
        found = [task.result() if task.done() else [] for task in (six, four)]
        six.cancel()
        four.cancel()
    if not any(found):
        raise no_address(name, "the name does not resolve")
    return _interleaved(*found)


def no_address(name: str, why: str) -> FreeholdError:
    return FreeholdError(
        "egress.no-address", f"{name} has no address: {why}", hint=f"Check the name on the host: getent hosts {name}"
    )


def _interleaved(six: Sequence[IPAddress], four: Sequence[IPAddress]) -> list[IPAddress]:
    mixed: list[IPAddress] = []
    for index in range(max(len(six), len(four))):
        mixed += [*six[index : index + 1], *four[index : index + 1]]
    return mixed[:MAX_ADDRESSES]


async def dial(addresses: Sequence[IPAddress], port: int, *, timeout: float) -> SocketStream:
    """Connects to the first address that answers. A new try starts every quarter of a second.

    Accepts only addresses, so no name is looked up a second time. Raises `egress.unreachable`.
    """
    queue = list(addresses)
    tries: set[asyncio.Task[SocketStream]] = set()
    try:
        async with asyncio.timeout(timeout):
            while queue or tries:
                if queue:
                    tries.add(asyncio.ensure_future(connect_socket(queue.pop(0), port)))
                done, tries = await asyncio.wait(
                    tries, timeout=DIAL_STAGGER if queue else None, return_when=asyncio.FIRST_COMPLETED
                )
                winners = [task.result() for task in done if task.exception() is None]
                for loser in winners[1:]:
                    await loser.close()
                if winners:
                    return winners[0]
    except TimeoutError:
        pass
    finally:
        for task in tries:
            task.cancel()
        for late in await asyncio.gather(*tries, return_exceptions=True):
            if isinstance(late, SocketStream):
                await late.close()
    raise FreeholdError("egress.unreachable", f"None of {len(addresses)} addresses answered on port {port}")
