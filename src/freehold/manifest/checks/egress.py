"""Checks of `[egress]`."""

import ipaddress
import re
from collections.abc import Iterator

from freehold.manifest.addresses import is_host_name, parse_ip, split_rule
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key, show_value

_AUTHORITY = re.compile(r"(?:\[(?P<v6>[^\[\]%]+)\]|(?P<name>[^:\[\]]+))(?::(?P<port>[1-9][0-9]{0,4}))?")


def _rules(manifest: Manifest) -> Iterator[tuple[KeyPath, str]]:
    for index, text in enumerate(manifest.egress.allow):
        yield ("egress", "allow", index), text
    for index, text in enumerate(manifest.egress.deny):
        yield ("egress", "deny", index), text


def _is_range(text: str) -> bool:
    if "/" not in text:
        return False
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


@check("W301")
def everything_may_leave(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Egress lets everything through that no rule refuses."""
    if manifest.egress.mode == "allow":
        yield CheckFinding(
            ("egress", "mode"),
            'egress.mode is "allow": whatever the agent reads, it can send anywhere',
            'mode = "ask" remembers your answers, so that it asks less and less',
        )


@check("E302")
def egress_rule_is_a_range(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An egress rule is a range of addresses."""
    for key, text in _rules(manifest):
        if _is_range(text):
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(text)}, a range of addresses",
                "Rules name hosts, one by one: api.example.com:443",
            )


@check("E303")
def egress_rule_is_a_bare_tld(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An egress rule is everything, or everything under a top-level domain."""
    for key, text in _rules(manifest):
        host = split_rule(text)[0].lower().removesuffix(".").removeprefix("*.")
        whole = host in ("*", "") or (
            "." not in host and host != "localhost" and is_host_name(host) and parse_ip(host) is None
        )
        if whole and text.strip() and not host.isdigit():
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(text)}, which is half the internet",
                "Name a host: example.com or *.example.com",
            )


@check("E304")
def egress_rule_is_no_host(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An egress rule is neither a host, nor `*.` and a host, nor an address in its usual spelling."""
    for key, text in _rules(manifest):
        if text != "*" and not _is_range(text) and not _names_a_host(text):
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(text)}, which is no host",
                'Examples: "api.test", "*.code.test:443"',
            )


def _names_a_host(text: str) -> bool:
    """As strict as egress itself: what has two readings (`127.1`, `[0::1]`, `a.com:080`) has none."""
    below = text.startswith("*.")
    rest = text.removeprefix("*.")
    if not rest.startswith("[") and isinstance(parse_ip(rest), ipaddress.IPv6Address):
        rest = f"[{rest}]"
    found = _AUTHORITY.fullmatch(rest)
    if found is None or int(found["port"] or 1) > 65535:
        return False
    if found["v6"]:
        address = parse_ip(found["v6"])
        canonical = isinstance(address, ipaddress.IPv6Address) and str(address) == found["v6"].lower()
        return canonical and not below and getattr(address, "ipv4_mapped", None) is None
    name = found["name"].removesuffix(".")
    last = name.rsplit(".", 1)[-1]
    if last.isdigit() or last.lower().startswith("0x"):
        return not below and str(parse_ip(name)) == found["name"]
    return "." in name and not name.endswith(".") and is_host_name(name) and _is_international(name)


def _is_international(name: str) -> bool:
    if name.isascii() and "xn--" not in name.lower():
        return True
    import idna

    try:
        for label in idna.encode(name.lower(), strict=True).decode().split("."):
            idna.ulabel(label)
    except (idna.IDNAError, UnicodeError):
        return False
    return True


@check("W305")
def allowed_and_denied(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A host is both allowed and denied; it is denied."""
    denied = {text.lower() for text in manifest.egress.deny}
    for index, text in enumerate(manifest.egress.allow):
        if text.lower() in denied:
            yield CheckFinding(
                ("egress", "allow", index),
                f"{show_value(text)} stands in egress.allow and in egress.deny, and deny wins",
                "Remove it of one of them",
            )
