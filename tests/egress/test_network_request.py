"""Network requests: durable, bounded, answered once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from freehold.egress.names import parse_host
from freehold.egress.network_request import (
    MAX_PENDING,
    MAX_PER_FAMILY,
    MAX_PER_SESSION,
    NetworkRequests,
    OwnerAnswer,
    family_of,
)
from freehold.egress.policy import EgressRule, parse_pattern
from freehold.egress.rules import EgressRules, ensure_tables
from freehold.errors import FreeholdError
from freehold.timeline import Timeline


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    with Timeline(tmp_path / "timeline.db") as opened:
        ensure_tables(opened)
        yield opened


@pytest.fixture
def requests(timeline: Timeline) -> NetworkRequests:
    return NetworkRequests(timeline)


@pytest.fixture
def rules(timeline: Timeline) -> EgressRules:
    return EgressRules(timeline)


def kinds(timeline: Timeline) -> list[str]:
    return [event.kind for event in timeline.read()]


def test_a_request_is_stored_once(requests: NetworkRequests, timeline: Timeline) -> None:
    for _ in range(3):
        assert requests.add(parse_host("example.org"), 443, "agent:test")
    (request,) = requests.all()
    assert (str(request.pattern), request.who, request.count) == ("example.org:443", "agent:test", 1)
    assert kinds(timeline) == ["egress.question_asked"]


def test_another_port_is_another_request(requests: NetworkRequests) -> None:
    requests.add(parse_host("example.org"), 443, "agent:test")
    requests.add(parse_host("example.org"), 22, "agent:test")
    assert [str(request.pattern) for request in requests.all()] == ["example.org:443", "example.org:22"]


def test_a_request_outlives_its_process(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as first:
        ensure_tables(first)
        NetworkRequests(first).add(parse_host("example.org"), 443, "agent:test")
    with Timeline(tmp_path / "timeline.db") as second:
        ensure_tables(second)
        assert [str(request.pattern) for request in NetworkRequests(second).all()] == ["example.org:443"]


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ("once", ("allow example.org:443", "once")),
        ("until_restart", ("allow example.org:443", "until_restart")),
        ("always", ("allow example.org:443", "always")),
        ("never", ("deny example.org", "always")),
    ],
)
def test_an_answer_is_a_rule_and_an_event(
    requests: NetworkRequests, rules: EgressRules, timeline: Timeline, answer: OwnerAnswer, rule: tuple[str, str]
) -> None:
    requests.add(parse_host("example.org"), 443, "agent:test")
    requests.answer(requests.all()[0].id, answer, who="owner:cli")
    assert [(str(found), found.reach) for found in rules.all()] == [rule]
    assert requests.all() == []
    assert kinds(timeline) == ["egress.question_asked", "egress.question_answered", "egress.rule_added"]
    assert {event.who for event in timeline.read(after=1)} == {"owner:cli"}


def test_an_answer_is_single_use(requests: NetworkRequests, rules: EgressRules) -> None:
    requests.add(parse_host("example.org"), 443, "agent:test")
    number = requests.all()[0].id
    requests.answer(number, "never")
    with pytest.raises(FreeholdError) as refusal:
        requests.answer(number, "always")
    assert refusal.value.code == "egress.no-request"
    assert [str(rule) for rule in rules.all()] == ["deny example.org"]


@pytest.mark.parametrize("number", [0, -1, 2, 2**63, 10**30])
def test_an_unknown_number_answers_no_request(requests: NetworkRequests, number: int) -> None:
    requests.add(parse_host("example.org"), 443, "agent:test")
    with pytest.raises(FreeholdError) as refusal:
        requests.answer(number, "always")
    assert refusal.value.code == "egress.no-request"
    assert len(requests.all()) == 1


def test_a_number_is_never_used_again(requests: NetworkRequests) -> None:
    """Otherwise an answer on its way to one request could reach another."""
    requests.add(parse_host("example.org"), 443, "agent:test")
    first = requests.all()[0].id
    requests.answer(first, "once")
    requests.add(parse_host("evil.example"), 443, "agent:test")
    assert requests.all()[0].id != first


def test_an_unknown_answer_changes_nothing(requests: NetworkRequests) -> None:
    requests.add(parse_host("example.org"), 443, "agent:test")
    with pytest.raises(FreeholdError):
        requests.answer(requests.all()[0].id, "perhaps")  # type: ignore[arg-type]
    assert len(requests.all()) == 1


def test_many_names_below_one_domain_become_one_request(requests: NetworkRequests, rules: EgressRules) -> None:
    for number in range(200):
        assert requests.add(parse_host(f"x{number}.tunnel.evil.example"), 443, "agent:test")
    (request,) = requests.all()
    assert str(request.pattern) == "*.evil.example:443"
    assert request.count == MAX_PER_FAMILY + 1
    requests.answer(request.id, "never")
    assert [str(rule) for rule in rules.all()] == ["deny *.evil.example"]


def test_a_flood_of_domains_ends_at_the_bound(requests: NetworkRequests, timeline: Timeline) -> None:
    taken = [
        requests.add(parse_host(f"evil{number}.example"), 443, "agent:test", f"session{number % 3}")
        for number in range(500)
    ]
    assert taken.count(True) == MAX_PENDING
    assert len(requests.all()) == MAX_PENDING
    assert len(kinds(timeline)) == MAX_PENDING


def test_a_flood_of_one_session_leaves_room_for_the_requests_of_others(requests: NetworkRequests) -> None:
    taken = [requests.add(parse_host(f"evil{number}.example"), 443, "agent:test", "flooding") for number in range(100)]
    assert taken.count(True) == MAX_PER_SESSION
    assert requests.add(parse_host("useful.example"), 443, "agent:test", "other")
    assert requests.add(parse_host("for-the-owner.example"), 443, "owner", None)


def test_strangers_below_a_shared_domain_are_not_one_family() -> None:
    def family(text: str) -> str:
        return family_of(parse_host(text))

    assert family("a.b.example.org") == "example.org"
    assert family("a.b.example.co.uk") == "example.co.uk"
    assert family("alice.github.io") == "alice.github.io"
    assert family("bucket.s3.eu-west-1.amazonaws.com") == "bucket.s3.eu-west-1.amazonaws.com"
    assert family("account.blob.core.windows.net") == "account.blob.core.windows.net"
    assert family("93.184.216.34") == "93.184.216.34"


def test_the_newest_word_about_a_pattern_counts(rules: EgressRules) -> None:
    pattern = parse_pattern("example.org")
    rules.add(EgressRule("deny", pattern, "always"))
    rules.add(EgressRule("allow", pattern, "always"))
    assert [str(rule) for rule in rules.all()] == ["allow example.org"]
    rules.add(EgressRule("deny", pattern, "always"))
    assert [str(rule) for rule in rules.all()] == ["deny example.org"]


def test_a_rule_is_forgotten_by_its_pattern(rules: EgressRules, timeline: Timeline) -> None:
    rules.add(EgressRule("allow", parse_pattern("EXAMPLE.org:8443"), "always"))
    assert rules.remove(parse_pattern("example.org:8443")) == ["allow example.org:8443"]
    assert rules.all() == []
    assert kinds(timeline) == ["egress.rule_added", "egress.rule_removed"]
    with pytest.raises(FreeholdError) as refusal:
        rules.remove(parse_pattern("example.org:8443"))
    assert refusal.value.code == "egress.no-rule"


def test_a_permission_for_once_is_used_up(rules: EgressRules) -> None:
    pattern = parse_pattern("example.org:443")
    rules.add(EgressRule("allow", pattern, "once"))
    assert rules.use_once([pattern], None) == pattern
    assert rules.use_once([pattern], None) is None


def test_attempts_are_counted_without_events(requests: NetworkRequests, timeline: Timeline) -> None:
    requests.add(parse_host("example.org"), 443, "agent:test")
    number = requests.all()[0].id
    requests.add_attempts({number: 41, 999: 5})
    assert requests.all()[0].count == 42
    assert kinds(timeline) == ["egress.question_asked"]


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ("example.org", ["example.org:22", "www.example.org:443"]),
        ("example.org:22", ["example.org:443", "www.example.org:443"]),
        ("*.example.org", ["example.org:443", "example.org:22"]),
    ],
)
def test_a_request_that_a_rule_covers_waits_no_longer(
    requests: NetworkRequests, rules: EgressRules, rule: str, left: list[str]
) -> None:
    for host, port in (("example.org", 443), ("example.org", 22), ("www.example.org", 443)):
        requests.add(parse_host(host), port, "agent:test")
    rules.add(EgressRule("allow", parse_pattern(rule), "always"))
    assert [str(request.pattern) for request in requests.all()] == left


def test_never_answers_for_every_port(requests: NetworkRequests) -> None:
    requests.add(parse_host("example.org"), 443, "agent:test")
    requests.add(parse_host("example.org"), 22, "agent:test")
    requests.answer(requests.all()[0].id, "never")
    assert requests.all() == []
