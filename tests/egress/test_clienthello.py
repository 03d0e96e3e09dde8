"""The name in the first message of TLS, from real clients and from liars."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.egress.clienthello import HELLO_LIMIT, MAX_RECORDS, ClientHello, read_client_hello
from freehold.errors import FreeholdError


def real_hello(name: str | None) -> bytes:
    """What OpenSSL really sends."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def sized(width: int, content: bytes) -> bytes:
    return len(content).to_bytes(width) + content


def extension(kind: int, content: bytes) -> bytes:
    return kind.to_bytes(2) + sized(2, content)


def server_name(name: bytes, kind: int = 0) -> bytes:
    return extension(0, sized(2, bytes([kind]) + sized(2, name)))


def message(extensions: bytes | None) -> bytes:
    body = b"\x03\x03" + bytes(32) + sized(1, b"") + sized(2, b"\x13\x01") + sized(1, b"\0")
    if extensions is not None:
        body += sized(2, extensions)
    return b"\x01" + sized(3, body)


def records(data: bytes, size: int = 16384) -> bytes:
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"\x16\x03\x01" + sized(2, piece) for piece in pieces)


def hello(extensions: bytes | None) -> bytes:
    return records(message(extensions))


def test_a_real_client_names_its_host() -> None:
    assert read_client_hello(real_hello("example.org")) == ClientHello("example.org")


def test_a_real_client_without_a_name() -> None:
    assert read_client_hello(real_hello(None)) == ClientHello(None)
    assert read_client_hello(hello(None)) == ClientHello(None)


def test_it_may_come_byte_by_byte() -> None:
    whole = real_hello("example.org")
    for length in range(len(whole)):
        needed = read_client_hello(whole[:length])
        assert isinstance(needed, int)
        assert length < needed <= len(whole)


def test_it_may_come_in_several_records() -> None:
    extensions = extension(0x0A0A, b"") + server_name(b"example.org") + extension(0xFE0D, bytes(200))
    whole = message(extensions)
    assert read_client_hello(records(whole, len(whole) // 20)) == ClientHello("example.org")


def test_grease_and_encrypted_hello_are_passed_over() -> None:
    extensions = (
        extension(0x0A0A, b"\0")
        + extension(0xFE0D, bytes(300))
        + server_name(b"outer.example")
        + extension(0xFAFA, b"")
    )
    assert read_client_hello(hello(extensions)) == ClientHello("outer.example")


LIES = {
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "sslv2": b"\x80\x2e\x01\x03\x01",
    "an alert": b"\x15\x03\x01\x00\x02\x02\x28",
    "application data": b"\x17\x03\x03\x00\x05hello",
    "a server's hello": records(b"\x02" + sized(3, bytes(40))),
    "an empty record": b"\x16\x03\x01\x00\x00",
    "a huge record": b"\x16\x03\x01\xff\xff",
    "a huge message": records(b"\x01\xff\xff\xff" + bytes(100)),
    "another record in the middle": records(message(server_name(b"a.example"))[:20]) + b"\x17\x03\x03\x00\x01a",
    "two names": hello(extension(0, sized(2, b"\0" + sized(2, b"a.example") + b"\0" + sized(2, b"b.example")))),
    "two extensions": hello(server_name(b"a.example") + server_name(b"b.example")),
    "another kind of name": hello(server_name(b"a.example", kind=1)),
    "an empty list": hello(extension(0, sized(2, b""))),
    "bytes after the name": hello(extension(0, sized(2, b"\0" + sized(2, b"a.example")) + b"x")),
    "a name that is not ascii": hello(server_name("bücher.example".encode())),
    "a length beyond the end": hello(b"\0\0\xff\xff"),
    "bytes after the extensions": records(b"\x01" + sized(3, message(b"")[4:] + b"x")),
    "a second message in its record": records(message(server_name(b"a.example")) + b"\x01\0\0\0"),
    "dust": records(message(extension(21, bytes(2000)) + server_name(b"a.example")), 1),
    "a truncated body": records(b"\x01" + sized(3, bytes([3, 3]) + bytes(10))),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_can_be_read_in_two_ways_is_refused(lie: str) -> None:
    with pytest.raises(FreeholdError) as refusal:
        read_client_hello(LIES[lie])
    assert refusal.value.code == "egress.not-tls"


@given(st.binary(max_size=400))
def test_any_bytes_are_a_hello_incomplete_or_refused(data: bytes) -> None:
    for candidate in (data, b"\x16\x03\x01" + data, hello(data), records(b"\x01" + sized(3, data))):
        try:
            found = read_client_hello(candidate)
        except FreeholdError:
            continue
        if isinstance(found, int):
            assert len(candidate) < found <= HELLO_LIMIT + 5 * MAX_RECORDS + 16384


@given(st.integers(0, 600), st.integers(0, 255))
def test_one_changed_byte_never_breaks_the_reader(place: int, value: int) -> None:
    whole = bytearray(hello(extension(0x0A0A, b"") + server_name(b"example.org") + extension(43, b"\x02\x03\x04")))
    whole[place % len(whole)] = value
    try:
        found = read_client_hello(bytes(whole))
    except FreeholdError:
        return
    assert isinstance(found, int | ClientHello)
