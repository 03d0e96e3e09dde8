"""Host names, addresses and URLs as the manifest writes them."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_ip(text: str) -> IpAddress | None:
    """An address in its usual spelling, with or without brackets."""
    try:
        return ipaddress.ip_address(text[1:-1] if text.startswith("[") and text.endswith("]") else text)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it. A name is not, but for localhost: DNS decides what it means."""
    address = parse_ip(host)
    if address is None:
        name = host.lower().rstrip(".")
        return name == "localhost" or name.endswith(".localhost")
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def is_any(host: str) -> bool:
    """Whether it stands for every address of this machine."""
    address = parse_ip(host)
    return address is not None and address.is_unspecified


def is_private(host: str) -> bool:
    """Whether it lies on this machine or its own network, as far as the spelling tells."""
    address = parse_ip(host)
    if address is None:
        name = host.lower().rstrip(".")
        return is_loopback(name) or name.endswith((".local", ".internal", ".lan", ".home.arpa"))
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return not (mapped or address).is_global


def is_host_name(text: str) -> bool:
    """Letters, digits and hyphens in labels; international names in any script are taken as they are."""
    name = text.lower().removesuffix(".")
    if not name or len(name) > 253 or not name.isprintable():
        return False
    try:
        name = name.encode("idna").decode()
    except UnicodeError:
        return False
    return all(_LABEL.fullmatch(label) for label in name.split("."))


def split_url(text: str) -> SplitResult | None:
    """The parts of an absolute URL with a host, or None for anything that browsers and we could read differently."""
    if not text.isprintable() or any(c in text for c in " \\"):
        return None
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if not parts.scheme or not parts.hostname or port == 0:
        return None
    return parts if parse_ip(parts.hostname) or is_host_name(parts.hostname) else None


def host_of(url: str) -> str:
    """The host of a URL, or nothing."""
    parts = split_url(url)
    return parts.hostname or "" if parts else ""


def split_rule(rule: str) -> tuple[str, str | None]:
    """`"*.code.test:443"` → `("*.code.test", "443")`; an IPv6 address with a port is in brackets."""
    if rule.startswith("["):
        host, _, rest = rule[1:].partition("]")
        return host, rest.removeprefix(":") if rest else None
    if rule.count(":") == 1:
        host, _, port = rule.partition(":")
        return host, port
    return rule, None
