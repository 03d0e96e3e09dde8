"""Host names as the guest may spell them: one meaning each, or refused.

Whatever has two readings (an address in octal, a name with an invisible character) is how a check is told one
thing and the connection another; so nothing is repaired here beyond case, one trailing dot and IDNA.
"""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

import idna

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


def odd(text: str, why: str) -> FreeholdError:
    return FreeholdError(
        "egress.odd-name",
        f"{text[:80]!a} is not a host that can be asked for: {why}",
        hint="Write a plain name such as example.org, or an address in its usual form such as 192.0.2.7 or [2001:db8::7]",
    )


def parse_host(text: str) -> Host:
    """The host that `text` means. IPv6 stands in brackets. Raises `egress.odd-name` for everything with a second reading."""
    if not text:
        raise odd(text, "it is empty")
    if text.startswith("[") or text.endswith("]"):
        return _bracketed(text)
    name = text[:-1] if text.endswith(".") else text
    name = _ascii(text, name)
    if len(name) > NAME_LIMIT:
        raise odd(text, f"it is longer than {NAME_LIMIT} characters")
    labels = name.split(".")
    if not all(labels):
        raise odd(text, "it has an empty label")
    if _NUMBER.fullmatch(labels[-1]):
        return _dotted(text)
    for label in labels:
        _check_label(text, label)
    if len(labels) == 1:
        raise odd(text, "it has no dot, so it would mean something else on every network")
    return Host(name)


def parse_port(text: str) -> int:
    """Digits without sign, space or leading zero, 1 to 65535."""
    if not _PORT.fullmatch(text) or int(text) > 65535:
        raise odd(text, "a port is a number from 1 to 65535")
    return int(text)


def split_authority(text: str) -> tuple[str, str | None]:
    """`host:port` or `host` apart, with IPv6 in brackets; nothing is checked but the shape."""
    if text.startswith("["):
        host, bracket, rest = text.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise odd(text, "its brackets do not match")
        return host + bracket, rest[1:] if rest else None
    host, colon, port = text.partition(":")
    if ":" in port:
        raise odd(text, "it has more than one colon; an IPv6 address stands in brackets")
    return host, port if colon else None


def _ascii(text: str, name: str) -> str:
    if name.isascii():
        return name.lower()
    try:
        # Strict, not UTS 46: what that would map away (soft hyphens, full-width digits) is refused instead.
        return idna.encode(name.lower(), strict=True).decode("ascii")
    except idna.IDNAError as error:
        raise odd(text, "it is not a valid international name") from error


def _check_label(text: str, label: str) -> None:
    if not _LABEL.fullmatch(label):
        raise odd(
            text, "a label holds letters, digits and hyphens, at most 63, and neither starts nor ends with a hyphen"
        )
    if label.startswith("xn--"):
        try:
            idna.ulabel(label)
        except (idna.IDNAError, UnicodeError) as error:
            raise odd(text, "its punycode is not a valid international name") from error


def _dotted(text: str) -> Host:
    # A last label that is a number makes every resolver read the whole as an IPv4 address, in octal, hex or one
    # big number as it pleases (`0177.1`, `2130706433`). Only the canonical spelling has one reading.
    try:
        address = IPv4Address(text)
    except AddressValueError as error:
        raise odd(text, "an IPv4 address is written as four decimal numbers") from error
    if str(address) != text:
        raise odd(text, f"the address is written {address}")
    return Host(text, address)


def _bracketed(text: str) -> Host:
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else ""
    if "%" in inner:
        raise odd(text, "an address with a zone only means something on this machine")
    try:
        address = IPv6Address(inner)
    except AddressValueError as error:
        raise odd(text, "between brackets stands an IPv6 address") from error
    if address.ipv4_mapped is not None:
        raise odd(text, f"the address is written {address.ipv4_mapped}")
    if str(address) != inner.lower():
        raise odd(text, f"the address is written [{address}]")
    return Host(str(address), address)
