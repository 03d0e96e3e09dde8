"""A host has one spelling, or it is refused."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.egress.names import Host, parse_host, parse_port, split_authority
from freehold.errors import FreeholdError


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("example.org", "example.org"),
        ("EXAMPLE.Org", "example.org"),
        ("example.org.", "example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("r3---sn-abc.googlevideo.com", "r3---sn-abc.googlevideo.com"),
        ("my_bucket.example.org", "my_bucket.example.org"),
        ("93.184.216.34", "93.184.216.34"),
        ("[2606:2800:220:1::1]", "2606:2800:220:1::1"),
        ("[2606:2800:220:1::ABCD]", "2606:2800:220:1::abcd"),
    ],
)
def test_a_name_is_brought_to_its_one_form(written: str, meant: str) -> None:
    assert parse_host(written).text == meant


ODD = [
    "",
    ".",
    "..",
    "example..org",
    ".example.org",
    "example.org..",
    "localhost",
    "exa mple.org",
    "example.org ",
    "example.org\0.evil.test",
    "example.org\r\n",
    "example.org\t",
    "exam\u00adple.org",
    "example\u3002org",
    "exa\u200bmple.org",
    "example.org%00",
    "user@example.org",
    "example.org:80",
    "-example.org",
    "example-.org",
    "a" * 64 + ".org",
    "a." * 130 + "org",
    "xn--.org",
    "xn--zzzzzzzzzz99999.org",
    "xn--a-ecp.ru",
    "*.example.org",
    "example.org/",
    "exam\\ple.org",
    "[example.org]",
]

ODD_ADDRESSES = [
    "127.1",
    "127.0.1",
    "0",
    "2130706433",
    "0x7f000001",
    "0X7F.1",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "127.0.0.01",
    "017700000001",
    "127.0.0.1.",
    "127.0.0.0x1",
    "256.256.256.256",
    "1.2.3.4.5",
    "foo.1",
    "foo.0x",
    "１２７.0.0.1",
    "127。0。0。1",
    "::1",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[0:0:0:0:0:0:0:1]",
    "[::0001]",
    "[fe80::1%eth0]",
    "[fe80::1%25eth0]",
    "[::1",
    "::1]",
    "[]",
    "[127.0.0.1]",
    "[2606:2800:0220:1::1]",
    "[v1.abc]",
]


@pytest.mark.parametrize("text", ODD + ODD_ADDRESSES)
def test_what_has_a_second_reading_is_refused(text: str) -> None:
    with pytest.raises(FreeholdError) as refusal:
        parse_host(text)
    assert refusal.value.code == "egress.odd-name"


@pytest.mark.parametrize("text", ["", "0", "65536", "-1", "+80", " 80", "080", "8o", "99999", "８０"])
def test_a_port_is_a_plain_number(text: str) -> None:
    with pytest.raises(FreeholdError):
        parse_port(text)


@pytest.mark.parametrize("text", ["[::1", "[::1]80", "a:b:c", "::1", "[::1]:80:81"])
def test_an_authority_with_odd_colons_names_no_port(text: str) -> None:
    def read() -> None:
        host, port = split_authority(text)
        parse_host(host)
        parse_port(port or "80")

    with pytest.raises(FreeholdError):
        read()


@given(st.text(max_size=80))
def test_any_text_is_a_host_in_normal_form_or_refused(text: str) -> None:
    try:
        host = parse_host(text)
    except FreeholdError:
        return
    assert parse_host(str(host)) == host
    assert host.text.isascii()
    assert host.text == host.text.lower()


@given(st.text(alphabet="0123456789abcfx.xX", min_size=1, max_size=24))
def test_what_the_c_library_reads_as_an_address_is_never_taken_for_a_name(text: str) -> None:
    try:
        host = parse_host(text)
    except FreeholdError:
        return
    if host.address is None:
        with pytest.raises(OSError):
            socket.inet_aton(text)
    else:
        assert host == Host(text, host.address)
        assert socket.inet_aton(text) == host.address.packed
