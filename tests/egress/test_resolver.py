"""Names looked up in real DNS packets, from a server of the test's own."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import cast

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from freehold.egress.addresses import resolve_by_dns
from freehold.errors import FreeholdError

Zone = Mapping[tuple[str, str], Sequence[str]]
"""(name, kind) to records; a CNAME is given as kind CNAME; a missing name does not exist; `silent` is never answered."""


class Server(asyncio.DatagramProtocol):
    def __init__(self, zone: Zone) -> None:
        self.zone = zone
        self.asked: list[tuple[str, str]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        question = query.question[0]
        name, kind = question.name.to_text(), dns.rdatatype.to_text(question.rdtype)
        self.asked.append((name, kind))
        if "silent" in self.zone.get((name, kind), ()):
            return
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        if not any(known == name for known, _kind in self.zone):
            answer.set_rcode(dns.rcode.NXDOMAIN)
        at = name
        while alias := self.zone.get((at, "CNAME")):
            answer.answer.append(dns.rrset.from_text(at, 60, "IN", "CNAME", alias[0]))
            at = alias[0]
        if records := self.zone.get((at, kind)):
            answer.answer.append(dns.rrset.from_text(at, 60, "IN", kind, *records))
        self.transport.sendto(answer.to_wire(), addr)


@asynccontextmanager
async def dns_server(zone: Zone) -> AsyncIterator[tuple[Server, Sequence[tuple[str, int]]]]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: Server(zone), ("127.0.0.1", 0))
    try:
        yield server, [("127.0.0.1", transport.get_extra_info("sockname")[1])]
    finally:
        transport.close()


async def test_both_families_are_asked_and_mixed() -> None:
    zone = {
        ("example.org.", "A"): ["93.184.216.34", "93.184.216.35"],
        ("example.org.", "AAAA"): ["2606:2800:220:1::1"],
    }
    async with dns_server(zone) as (server, servers):
        found = await resolve_by_dns("example.org", servers)
        assert found[0] == ip_address("2606:2800:220:1::1")
        assert {str(address) for address in found[1:]} == {"93.184.216.34", "93.184.216.35"}
        assert sorted(server.asked) == [("example.org.", "A"), ("example.org.", "AAAA")]


async def test_an_alias_is_followed() -> None:
    zone = {("www.example.org.", "CNAME"): ["cdn.example.net."], ("cdn.example.net.", "A"): ["93.184.216.34"]}
    async with dns_server(zone) as (_server, servers):
        assert await resolve_by_dns("www.example.org", servers) == [ip_address("93.184.216.34")]


async def test_a_question_that_is_swallowed_does_not_hold_up_the_other() -> None:
    zone = {("example.org.", "A"): ["93.184.216.34"], ("example.org.", "AAAA"): ["silent"]}
    async with dns_server(zone) as (_server, servers), asyncio.timeout(5):
        assert await resolve_by_dns("example.org", servers) == [ip_address("93.184.216.34")]


async def test_a_name_that_does_not_exist_is_an_explained_error() -> None:
    async with dns_server({("other.example.", "A"): ["93.184.216.34"]}) as (server, servers):
        with pytest.raises(FreeholdError) as refusal:
            await resolve_by_dns("example.org", servers)
        assert refusal.value.code == "egress.no-address"
        assert {name for name, _kind in server.asked} == {"example.org."}, "no search domain is tried"


async def test_more_addresses_than_are_sensible_are_not_tried() -> None:
    zone = {("example.org.", "A"): [f"93.184.216.{last}" for last in range(1, 21)]}
    async with dns_server(zone) as (_server, servers):
        assert len(await resolve_by_dns("example.org", servers)) == 8


async def test_a_lookup_can_be_given_up() -> None:
    zone = {("example.org.", "A"): ["silent"], ("example.org.", "AAAA"): ["silent"]}
    async with dns_server(zone) as (_server, servers):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await resolve_by_dns("example.org", servers)
