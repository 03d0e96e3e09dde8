"""Host names from inside the computer: each has one meaning or is refused.

A spelling with two readings (an address in octal, a name with an invisible character) could pass the check as one host and
connect to another. So only case, one trailing dot and IDNA are normalised.
"""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from freehold.errors import FreeholdError

IPAddress = IPv4Address | IPv6Address

NAME_LIMIT = 253
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")


@dataclass(frozen=True)
class Host:
    """A name in its one normal form, or an address in its one canonical form."""

    text: str
    address: IPAddress | None = None

    def __str__(self) -> str:
        return f"[{self.text}]" if isinstance(self.address, IPv6Address) else self.text


def is_loopback(host: Host) -> bool:
    return host.address is not None and host.address.is_loopback


def bad_name(text: str, why: str) -> FreeholdError:
    return FreeholdError(
        "egress.odd-name",
        f"{text[:80]!a} is not a valid host: {why}",
        hint="Use a name such as example.org, or an address in its usual form such as 192.0.2.7 or [2001:db8::7]",
    )


def parse_host(text: str) -> Host:
    """The host that `text` means. IPv6 addresses are in brackets. Raises `egress.odd-name` for an ambiguous spelling."""
    if not text:
        raise bad_name(text, "it is empty")
    if text.startswith("[") or text.endswith("]"):
        return _bracketed(text)
    name = text[:-1] if text.endswith(".") else text
    name = _ascii(text, name)
    if len(name) > NAME_LIMIT:
        raise bad_name(text, f"it is longer than {NAME_LIMIT} characters")
    labels = name.split(".")
    if not all(labels):
        raise bad_name(text, "it has an empty label")
    if _NUMBER.fullmatch(labels[-1]):
        return _dotted(text)
    for label in labels:
        _check_label(text, label)
    if len(labels) == 1:
        raise bad_name(text, "it has no dot, so its meaning depends on the network")
    return Host(name)


def parse_port(text: str) -> int:
    """A number from 1 to 65535, without sign, space or leading zero."""
    if not _PORT.fullmatch(text) or int(text) > 65535:
        raise bad_name(text, "a port is a number from 1 to 65535")
    return int(text)


def split_authority(text: str) -> tuple[str, str | None]:
    """Splits `host:port` or `host`, with IPv6 in brackets. Only the shape is checked."""
    if text.startswith("["):
        host, bracket, rest = text.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise bad_name(text, "its brackets do not match")
        return host + bracket, rest[1:] if rest else None
    host, colon, port = text.partition(":")
    if ":" in port:
        raise bad_name(text, "it has more than one colon; write an IPv6 address in brackets")
    return host, port if colon else None


def _ascii(text: str, name: str) -> str:
    if name.isascii():
        return name.lower()
    import idna  # with large tables, and few names need them

    try:
        # Strict, not UTS 46: characters that it would map (soft hyphens, full-width digits) are refused.
        return idna.encode(name.lower(), strict=True).decode("ascii")
    except idna.IDNAError as error:
        raise bad_name(text, "it is not a valid international name") from error


def _check_label(text: str, label: str) -> None:
    if not _LABEL.fullmatch(label):
        raise bad_name(
            text, "a label has at most 63 letters, digits and hyphens, and does not start or end with a hyphen"
        )
    if label.startswith("xn--"):
        import idna

        try:
            idna.ulabel(label)
        except (idna.IDNAError, UnicodeError) as error:
            raise bad_name(text, "its punycode is not a valid international name") from error


def _dotted(text: str) -> Host:
    # When the last label is a number, resolvers read the whole name as an IPv4 address, in octal, hex or one large
    # number (`0177.1`, `2130706433`). Only the canonical spelling has one reading.
    try:
        address = IPv4Address(text)
    except AddressValueError as error:
        raise bad_name(text, "an IPv4 address is written as four decimal numbers") from error
    if str(address) != text:
        raise bad_name(text, f"the address is written {address}")
    return Host(text, address)


def _bracketed(text: str) -> Host:
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else ""
    if "%" in inner:
        raise bad_name(text, "an address with a zone is only valid on one machine")
    try:
        address = IPv6Address(inner)
    except AddressValueError as error:
        raise bad_name(text, "only an IPv6 address may be in brackets") from error
    if address.ipv4_mapped is not None:
        raise bad_name(text, f"the address is written {address.ipv4_mapped}")
    if str(address) != inner.lower():
        raise bad_name(text, f"the address is written [{address}]")
    return Host(str(address), address)
