"""Modes, rules and ports."""

from ipaddress import ip_address

import pytest

from freehold.egress.names import parse_host
from freehold.egress.policy import EgressPolicy, EgressRule, Mode, Verdict, parse_pattern
from freehold.errors import FreeholdError


def policy(mode: Mode, *, allow: tuple[str, ...] = (), deny: tuple[str, ...] = ()) -> EgressPolicy:
    rules = [EgressRule("allow", parse_pattern(text)) for text in allow] + [
        EgressRule("deny", parse_pattern(text)) for text in deny
    ]
    return EgressPolicy(mode, tuple(rules))


def verdict(rules: EgressPolicy, host: str, port: int = 443) -> Verdict:
    return rules.decide(parse_host(host), port).verdict


@pytest.mark.parametrize("mode", ["deny", "ask", "allow"])
def test_what_no_rule_names_follows_the_mode(mode: Mode) -> None:
    assert verdict(policy(mode), "example.org") == mode


def test_a_name_matches_itself_and_nothing_below() -> None:
    rules = policy("deny", allow=("Example.ORG.",))
    assert verdict(rules, "example.org") == "allow"
    assert verdict(rules, "www.example.org") == "deny"
    assert verdict(rules, "notexample.org") == "deny"
    assert verdict(rules, "example.org.evil.test") == "deny"


def test_a_wildcard_matches_everything_below_and_not_the_apex() -> None:
    rules = policy("deny", allow=("*.example.org",))
    assert verdict(rules, "www.example.org") == "allow"
    assert verdict(rules, "a.b.example.org") == "allow"
    assert verdict(rules, "example.org") == "deny"
    assert verdict(rules, "wwwexample.org") == "deny"


def test_deny_wins_whatever_the_order_and_the_width() -> None:
    assert verdict(policy("allow", allow=("www.example.org",), deny=("*.example.org",)), "www.example.org") == "deny"
    assert verdict(policy("allow", allow=("*.example.org",), deny=("www.example.org",)), "www.example.org") == "deny"


def test_only_the_usual_ports_come_with_a_name() -> None:
    rules = policy("deny", allow=("example.org", "odd.example.org:8443"))
    assert verdict(rules, "example.org", 80) == "allow"
    assert verdict(rules, "example.org", 443) == "allow"
    assert verdict(rules, "example.org", 22) == "deny"
    assert verdict(rules, "odd.example.org", 8443) == "allow"
    assert verdict(rules, "odd.example.org", 443) == "deny"


def test_the_mode_allow_does_not_open_odd_ports() -> None:
    assert verdict(policy("allow"), "example.org", 25) == "deny"


def test_a_deny_without_a_port_closes_every_port() -> None:
    rules = policy("allow", allow=("example.org:8443",), deny=("example.org",))
    assert verdict(rules, "example.org", 8443) == "deny"


def test_an_address_that_is_not_public_is_never_asked_about() -> None:
    host = parse_host("169.254.169.254")
    for mode in ("deny", "ask", "allow"):
        assert policy(mode).decide(host, 80, "link-local").verdict == "deny"
    assert policy("deny", allow=("169.254.169.254",)).decide(host, 80, "link-local").verdict == "allow"


def test_a_name_may_lead_to_a_private_address_only_where_a_rule_names_that_address() -> None:
    address = ip_address("10.0.0.7")
    by_name = policy("allow", allow=("nas.example.org",))
    assert by_name.decide_address(address, 443, "private").verdict == "deny"
    by_both = policy("allow", allow=("nas.example.org", "10.0.0.7"))
    assert by_both.decide_address(address, 443, "private").verdict == "allow"
    assert by_both.decide_address(address, 8080, "private").verdict == "deny"


def test_a_denied_address_is_denied_under_every_name() -> None:
    rules = policy("allow", allow=("example.org",), deny=("93.184.216.34",))
    assert rules.decide_address(ip_address("93.184.216.34"), 443, None).verdict == "deny"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "*.",
        "**.example.org",
        "*.*.example.org",
        "www.*.org",
        "*.10.0.0.1",
        "10.0.0.0/8",
        "https://example.org/",
        "org",
        "*.org ",
        "example.org:",
        "example.org:0",
        "example.org:*",
        "0x7f.1",
    ],
)
def test_a_rule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(FreeholdError):
        parse_pattern(text)


@pytest.mark.parametrize(
    "text",
    ["example.org", "*.example.org", "example.org:8443", "192.0.2.7:8080", "[2001:db8::7]", "[2001:db8::7]:8080"],
)
def test_a_rule_reads_back_as_it_was_written(text: str) -> None:
    assert str(parse_pattern(text)) == text
    assert parse_pattern(str(parse_pattern(text))) == parse_pattern(text)


def test_an_ipv6_rule_needs_no_brackets() -> None:
    assert parse_pattern("2001:db8::7") == parse_pattern("[2001:db8::7]")
