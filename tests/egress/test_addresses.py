"""Only addresses on the open internet are dialled unasked, and only those that were checked."""

import asyncio
from ipaddress import ip_address

import pytest
from tests.egress.proxy_harness import echo, run_server
from tests.support.condition import DEADLINE

from freehold.egress.addresses import dial, why_refused, why_refused_here
from freehold.errors import FreeholdError

NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::a9fe:a9fe",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:93.184.216.34",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:5ef5:79fd::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "fe80::a9fe:a9fe",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused(text: str) -> None:
    assert why_refused(ip_address(text))


@pytest.mark.parametrize(
    "text", ["1.1.1.1", "93.184.216.34", "100.128.0.1", "172.32.0.1", "2606:2800:220:1::1", "2a00:1450:4001::8a"]
)
def test_a_public_address_is_not(text: str) -> None:
    assert why_refused(ip_address(text)) is None


def test_a_translated_public_address_passes_on_an_ipv6_only_machine() -> None:
    assert why_refused(ip_address("64:ff9b::5db8:d822")) is None


def test_this_machines_own_address_is_refused_however_it_is_classed() -> None:
    assert why_refused_here(ip_address("127.0.0.1"))
    assert why_refused_here(ip_address("1.1.1.1")) is None


async def test_the_first_address_that_answers_is_used() -> None:
    async with run_server(echo) as server:
        addresses = [ip_address("127.77.9.9"), ip_address("127.0.0.1")]
        stream = await dial(addresses, server.port, timeout=DEADLINE)
        assert stream.peer == ip_address("127.0.0.1")
        await stream.write(b"hello")
        assert await stream.read(5) == b"hello"
        await stream.close()


async def test_nobody_answering_is_an_error_that_names_no_address() -> None:
    async with run_server(echo) as server:
        port = server.port
    with pytest.raises(FreeholdError) as refusal:
        await dial([ip_address("127.0.0.1")], port, timeout=DEADLINE)
    assert refusal.value.code == "egress.unreachable"
    assert "127.0.0.1" not in refusal.value.message


async def test_dialling_can_be_given_up_at_any_time() -> None:
    async with run_server(echo) as server:
        task = asyncio.ensure_future(dial([ip_address("127.0.0.1")], server.port, timeout=DEADLINE))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
