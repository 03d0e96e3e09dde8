"""Which hosts may be reached: a mode, rules, and one pure decision."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from ipaddress import AddressValueError, IPv6Address
from typing import Literal

from freehold.egress.names import Host, IPAddress, bad_name, parse_host, parse_port, split_authority
from freehold.errors import FreeholdError

Mode = Literal["deny", "ask", "allow"]
Verdict = Literal["allow", "deny", "ask"]
Reach = Literal["manifest", "always", "until_restart", "conversation", "once"]
"""How long a rule lasts. A `conversation` rule holds for one session and ends with its agent."""

USUAL_PORTS = frozenset({80, 443})


@dataclass(frozen=True)
class HostPattern:
    """The hosts and ports of a rule: a host, or every name below it; one port, or the usual ones."""

    host: Host
    below: bool = False
    port: int | None = None

    def __str__(self) -> str:
        return f"{'*.' if self.below else ''}{self.host}{f':{self.port}' if self.port else ''}"


@dataclass(frozen=True)
class EgressRule:
    """`session` is the only session that the rule holds for; None means every program in the computer."""

    verdict: Literal["allow", "deny"]
    pattern: HostPattern
    reach: Reach = "manifest"
    session: str | None = None

    def __str__(self) -> str:
        return f"{self.verdict} {self.pattern}"

    def applies_to(self, session: str | None) -> bool:
        return self.session is None or self.session == session

    def covers_port(self, port: int) -> bool:
        """A rule without a port allows the usual ports, and denies every port."""
        if self.pattern.port is not None:
            return port == self.pattern.port
        return self.verdict == "deny" or port in USUAL_PORTS

    def covers(self, other: HostPattern) -> bool:
        """Whether this rule decides every connection that `other` matches."""
        if other.port is None or not self.covers_port(other.port):
            return False
        if not self.pattern.below:
            return self.pattern.host == other.host and not other.below
        below = other.host.text.endswith(f".{self.pattern.host.text}")
        return below or (other.below and other.host == self.pattern.host)


@dataclass(frozen=True)
class Decision:
    verdict: Verdict
    reason: str
    rule: EgressRule | None = None


def parse_pattern(text: str) -> HostPattern:
    """Reads `example.org`, `*.example.org`, `192.0.2.7` or `[2001:db8::7]`, each with or without `:port`."""
    below = text.startswith("*.")
    rest = text[2:] if below else text
    if "/" in rest:
        raise FreeholdError(
            "egress.range",
            f"{text[:80]!a} is not one host: an egress rule names hosts, not address ranges or URLs",
            hint="Name each host, as in example.org, *.example.org or 192.0.2.7:8080",
        )
    if not below and _is_bare_v6(rest):
        rest = f"[{rest}]"
    if "*" in rest:
        raise bad_name(text, "a wildcard may only stand once, at the start: *.example.org")
    name, port = split_authority(rest)
    host = parse_host(name)
    if below and host.address is not None:
        raise bad_name(text, "an address has no names below it")
    return HostPattern(host, below, parse_port(port) if port is not None else None)


def _is_bare_v6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


@dataclass(frozen=True)
class EgressPolicy:
    """A mode and rules. Immutable: a change replaces the policy, so one decision sees one policy."""

    mode: Mode
    rules: tuple[EgressRule, ...] = ()

    @cached_property
    def _by_host(self) -> dict[tuple[str, bool], list[EgressRule]]:
        index: dict[tuple[str, bool], list[EgressRule]] = {}
        for rule in self.rules:
            index.setdefault((rule.pattern.host.text, rule.pattern.below), []).append(rule)
        return index

    def decide(self, host: Host, port: int, refused: str | None = None, session: str | None = None) -> Decision:
        """What to do with a connection of `session` to `host`. `refused` is why its address is not public, if it is one.

        Deny wins over allow. The owner is never asked about an address that is not public: only a rule that names it
        allows it.
        """
        rules = [rule for rule in self._about(host) if rule.covers_port(port) and rule.applies_to(session)]
        for rule in rules:
            if rule.verdict == "deny":
                return Decision("deny", f"the rule '{rule}' denies it", rule)
        for rule in rules:
            return Decision("allow", f"the rule '{rule}' allows it", rule)
        if refused:
            return Decision("deny", f"{host} is a {refused} address and no rule names it")
        if self.mode == "allow" and port not in USUAL_PORTS:
            return Decision("deny", f"port {port} is not 80 or 443 and no rule names it")
        if self.mode == "ask":
            return Decision("ask", "no rule covers it, so the owner is asked")
        if self.mode == "allow":
            return Decision("allow", "the mode is allow")
        return Decision("deny", "no rule allows it")

    def decide_address(
        self, address: IPAddress, port: int, refused: str | None, session: str | None = None
    ) -> Decision:
        """Whether an allowed name may lead to this address. A deny rule that names the address wins here too."""
        rules = [
            rule
            for rule in self._by_host.get((str(address), False), ())
            if rule.covers_port(port) and rule.applies_to(session)
        ]
        for rule in sorted(rules, key=lambda rule: rule.verdict != "deny"):
            return Decision(rule.verdict, f"the rule '{rule}' names the address", rule)
        if refused:
            return Decision("deny", f"it leads to a {refused} address and no rule names that address")
        return Decision("allow", "it leads to a public address")

    def _about(self, host: Host) -> Iterable[EgressRule]:
        yield from self._by_host.get((host.text, False), ())
        if host.address is None:
            labels = host.text.split(".")
            for start in range(1, len(labels)):
                yield from self._by_host.get((".".join(labels[start:]), True), ())
