"""Who may be talked to: a mode, rules, and one pure decision."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from ipaddress import AddressValueError, IPv6Address
from typing import Literal

from freehold.egress.names import Host, IPAddress, odd, parse_host, parse_port, split_authority
from freehold.errors import FreeholdError

Mode = Literal["deny", "ask", "allow"]
Verdict = Literal["allow", "deny", "ask"]
Scope = Literal["manifest", "always", "session", "once"]

USUAL_PORTS = frozenset({80, 443})


@dataclass(frozen=True)
class Pattern:
    """Which hosts and ports a rule is about: a host, or everything strictly below one; a port, or the usual ones."""

    host: Host
    below: bool = False
    port: int | None = None

    def __str__(self) -> str:
        return f"{'*.' if self.below else ''}{self.host}{f':{self.port}' if self.port else ''}"


@dataclass(frozen=True)
class Rule:
    verdict: Literal["allow", "deny"]
    pattern: Pattern
    scope: Scope = "manifest"

    def __str__(self) -> str:
        return f"{self.verdict} {self.pattern}"

    def covers_port(self, port: int) -> bool:
        """A rule without a port allows the usual ports, and denies every port."""
        if self.pattern.port is not None:
            return port == self.pattern.port
        return self.verdict == "deny" or port in USUAL_PORTS

    def covers(self, asked: Pattern) -> bool:
        """Whether this rule decides everything that `asked` is about."""
        if asked.port is None or not self.covers_port(asked.port):
            return False
        if not self.pattern.below:
            return self.pattern.host == asked.host and not asked.below
        below = asked.host.text.endswith(f".{self.pattern.host.text}")
        return below or (asked.below and asked.host == self.pattern.host)


@dataclass(frozen=True)
class Decision:
    verdict: Verdict
    reason: str
    rule: Rule | None = None


def parse_pattern(text: str) -> Pattern:
    """`example.org`, `*.example.org`, `192.0.2.7`, `[2001:db8::7]`, each with `:port` or without."""
    below = text.startswith("*.")
    rest = text[2:] if below else text
    if "/" in rest:
        raise FreeholdError(
            "egress.range",
            f"{text[:80]!a} is not one host: an egress rule names hosts, not ranges or addresses of pages",
            hint="Name each host, as in example.org, *.example.org or 192.0.2.7:8080",
        )
    if not below and _is_bare_v6(rest):
        rest = f"[{rest}]"
    if "*" in rest:
        raise odd(text, "a wildcard stands once, in front: *.example.org")
    name, port = split_authority(rest)
    host = parse_host(name)
    if below and host.address is not None:
        raise odd(text, "there is nothing below an address")
    return Pattern(host, below, parse_port(port) if port is not None else None)


def _is_bare_v6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


@dataclass(frozen=True)
class Policy:
    """A mode and rules. Never changed, only replaced, so that one decision sees one policy."""

    mode: Mode
    rules: tuple[Rule, ...] = ()

    @cached_property
    def _by_host(self) -> dict[tuple[str, bool], list[Rule]]:
        index: dict[tuple[str, bool], list[Rule]] = {}
        for rule in self.rules:
            index.setdefault((rule.pattern.host.text, rule.pattern.below), []).append(rule)
        return index

    def decide(self, host: Host, port: int, refused: str | None = None) -> Decision:
        """What to do with a connection to `host`; `refused` says what is wrong with the address if it is one.

        Deny wins over allow. An address that is not public is never asked about: only a rule that names it lets it pass.
        """
        rules = [rule for rule in self._about(host) if rule.covers_port(port)]
        for rule in rules:
            if rule.verdict == "deny":
                return Decision("deny", f"the rule '{rule}' says no", rule)
        for rule in rules:
            return Decision("allow", f"the rule '{rule}' says yes", rule)
        if refused:
            return Decision("deny", f"{host} is a {refused} address and no rule names it")
        if self.mode == "allow" and port not in USUAL_PORTS:
            return Decision("deny", f"port {port} is not 80 or 443 and no rule names it")
        if self.mode == "ask":
            return Decision("ask", "no rule knows it, so the owner is asked")
        if self.mode == "allow":
            return Decision("allow", "the mode is allow")
        return Decision("deny", "no rule allows it")

    def decide_address(self, address: IPAddress, port: int, refused: str | None) -> Decision:
        """Whether a name that was let through may lead to this address; a deny rule naming the address wins here too."""
        rules = [rule for rule in self._by_host.get((str(address), False), ()) if rule.covers_port(port)]
        for rule in sorted(rules, key=lambda rule: rule.verdict != "deny"):
            return Decision(rule.verdict, f"the rule '{rule}' names the address", rule)
        if refused:
            return Decision("deny", f"it leads to a {refused} address and no rule names that address")
        return Decision("allow", "it leads to a public address")

    def _about(self, host: Host) -> Iterable[Rule]:
        yield from self._by_host.get((host.text, False), ())
        if host.address is None:
            labels = host.text.split(".")
            for start in range(1, len(labels)):
                yield from self._by_host.get((".".join(labels[start:]), True), ())
