"""Questions: durable, bounded, answered once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from freehold.egress.names import parse_host
from freehold.egress.policy import parse_pattern
from freehold.egress.questions import MAX_PENDING, MAX_PER_FAMILY, Answer, Questions, family_of
from freehold.egress.rules import Rules, ensure_tables
from freehold.errors import FreeholdError
from freehold.timeline import Timeline


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    with Timeline(tmp_path / "timeline.db") as opened:
        ensure_tables(opened)
        yield opened


@pytest.fixture
def questions(timeline: Timeline) -> Questions:
    return Questions(timeline)


@pytest.fixture
def rules(timeline: Timeline) -> Rules:
    return Rules(timeline)


def kinds(timeline: Timeline) -> list[str]:
    return [event.kind for event in timeline.read()]


def test_a_question_is_asked_once(questions: Questions, timeline: Timeline) -> None:
    for _ in range(3):
        assert questions.ask(parse_host("example.org"), 443, "agent:test")
    (question,) = questions.all()
    assert (str(question.pattern), question.who, question.count) == ("example.org:443", "agent:test", 1)
    assert kinds(timeline) == ["egress.question_asked"]


def test_another_port_is_another_question(questions: Questions) -> None:
    questions.ask(parse_host("example.org"), 443, "agent:test")
    questions.ask(parse_host("example.org"), 22, "agent:test")
    assert [str(question.pattern) for question in questions.all()] == ["example.org:443", "example.org:22"]


def test_a_question_outlives_the_process_that_asked(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as first:
        ensure_tables(first)
        Questions(first).ask(parse_host("example.org"), 443, "agent:test")
    with Timeline(tmp_path / "timeline.db") as second:
        ensure_tables(second)
        assert [str(question.pattern) for question in Questions(second).all()] == ["example.org:443"]


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ("once", ("allow example.org:443", "once")),
        ("session", ("allow example.org:443", "session")),
        ("always", ("allow example.org:443", "always")),
        ("never", ("deny example.org", "always")),
    ],
)
def test_an_answer_is_a_rule_and_an_event(
    questions: Questions, rules: Rules, timeline: Timeline, answer: Answer, rule: tuple[str, str]
) -> None:
    questions.ask(parse_host("example.org"), 443, "agent:test")
    questions.answer(questions.all()[0].id, answer, who="owner:cli")
    assert [(str(found), found.scope) for found in rules.all()] == [rule]
    assert questions.all() == []
    assert kinds(timeline) == ["egress.question_asked", "egress.question_answered", "egress.rule_added"]
    assert {event.who for event in timeline.read(after=1)} == {"owner:cli"}


def test_an_answer_is_single_use(questions: Questions, rules: Rules) -> None:
    questions.ask(parse_host("example.org"), 443, "agent:test")
    number = questions.all()[0].id
    questions.answer(number, "never")
    with pytest.raises(FreeholdError) as refusal:
        questions.answer(number, "always")
    assert refusal.value.code == "egress.no-question"
    assert [str(rule) for rule in rules.all()] == ["deny example.org"]


@pytest.mark.parametrize("number", [0, -1, 2, 2**63, 10**30])
def test_a_number_that_no_question_has_answers_none(questions: Questions, number: int) -> None:
    questions.ask(parse_host("example.org"), 443, "agent:test")
    with pytest.raises(FreeholdError) as refusal:
        questions.answer(number, "always")
    assert refusal.value.code == "egress.no-question"
    assert len(questions.all()) == 1


def test_a_number_is_never_used_again(questions: Questions) -> None:
    """Or an answer on its way to one question could land on another."""
    questions.ask(parse_host("example.org"), 443, "agent:test")
    first = questions.all()[0].id
    questions.answer(first, "once")
    questions.ask(parse_host("evil.example"), 443, "agent:test")
    assert questions.all()[0].id != first


def test_an_unknown_answer_changes_nothing(questions: Questions) -> None:
    questions.ask(parse_host("example.org"), 443, "agent:test")
    with pytest.raises(FreeholdError):
        questions.answer(questions.all()[0].id, "perhaps")  # type: ignore[arg-type]
    assert len(questions.all()) == 1


def test_many_names_below_one_domain_become_one_question(questions: Questions, rules: Rules) -> None:
    for number in range(200):
        assert questions.ask(parse_host(f"x{number}.tunnel.evil.example"), 443, "agent:test")
    (question,) = questions.all()
    assert str(question.pattern) == "*.evil.example:443"
    assert question.count == MAX_PER_FAMILY + 1
    questions.answer(question.id, "never")
    assert [str(rule) for rule in rules.all()] == ["deny *.evil.example"]


def test_a_flood_of_domains_ends_at_the_bound(questions: Questions, timeline: Timeline) -> None:
    taken = [questions.ask(parse_host(f"evil{number}.example"), 443, "agent:test") for number in range(500)]
    assert taken.count(True) == MAX_PENDING
    assert len(questions.all()) == MAX_PENDING
    assert len(kinds(timeline)) == MAX_PENDING


def test_strangers_below_a_shared_domain_are_not_one_family() -> None:
    def family(text: str) -> str:
        return family_of(parse_host(text))

    assert family("a.b.example.org") == "example.org"
    assert family("a.b.example.co.uk") == "example.co.uk"
    assert family("alice.github.io") == "alice.github.io"
    assert family("bucket.s3.eu-west-1.amazonaws.com") == "bucket.s3.eu-west-1.amazonaws.com"
    assert family("account.blob.core.windows.net") == "account.blob.core.windows.net"
    assert family("93.184.216.34") == "93.184.216.34"


def test_the_newest_word_about_a_pattern_counts(rules: Rules) -> None:
    pattern = parse_pattern("example.org")
    rules.add("deny", pattern)
    rules.add("allow", pattern)
    assert [str(rule) for rule in rules.all()] == ["allow example.org"]
    rules.add("deny", pattern)
    assert [str(rule) for rule in rules.all()] == ["deny example.org"]


def test_a_rule_is_forgotten_by_its_pattern(rules: Rules, timeline: Timeline) -> None:
    rules.add("allow", parse_pattern("EXAMPLE.org:8443"))
    assert rules.forget(parse_pattern("example.org:8443")) == ["allow example.org:8443"]
    assert rules.all() == []
    assert kinds(timeline) == ["egress.rule_added", "egress.rule_removed"]
    with pytest.raises(FreeholdError) as refusal:
        rules.forget(parse_pattern("example.org:8443"))
    assert refusal.value.code == "egress.no-rule"


def test_a_permission_for_once_is_used_up(rules: Rules) -> None:
    pattern = parse_pattern("example.org:443")
    rules.add("allow", pattern, scope="once")
    assert rules.take_once([pattern]) == pattern
    assert rules.take_once([pattern]) is None


def test_attempts_are_counted_without_events(questions: Questions, timeline: Timeline) -> None:
    questions.ask(parse_host("example.org"), 443, "agent:test")
    number = questions.all()[0].id
    questions.count({number: 41, 999: 5})
    assert questions.all()[0].count == 42
    assert kinds(timeline) == ["egress.question_asked"]


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ("example.org", ["example.org:22", "www.example.org:443"]),
        ("example.org:22", ["example.org:443", "www.example.org:443"]),
        ("*.example.org", ["example.org:443", "example.org:22"]),
    ],
)
def test_a_question_that_a_rule_answers_waits_no_longer(
    questions: Questions, rules: Rules, rule: str, left: list[str]
) -> None:
    for host, port in (("example.org", 443), ("example.org", 22), ("www.example.org", 443)):
        questions.ask(parse_host(host), port, "agent:test")
    rules.add("allow", parse_pattern(rule))
    assert [str(question.pattern) for question in questions.all()] == left


def test_never_answers_for_every_port(questions: Questions) -> None:
    questions.ask(parse_host("example.org"), 443, "agent:test")
    questions.ask(parse_host("example.org"), 22, "agent:test")
    questions.answer(questions.all()[0].id, "never")
    assert questions.all() == []
