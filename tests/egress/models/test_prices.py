"""Prices come from the table that ships with Freehold. What is missing in it counts as the dearest of its provider."""

import re
from datetime import UTC, date, datetime
from unittest.mock import Mock

import pytest

from freehold.egress.models.prices import UNLISTED_TIER_FACTOR, Prices, Rates, _matches
from freehold.egress.models.usage import TokenCounts, TokenKinds

MILLION = 1_000_000
OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"
GOOGLE = "https://generativelanguage.googleapis.com"
TODAY = date(2026, 11, 1)


def dollars(address: str, model: str, tokens: TokenCounts, tier: str | None = None, **kinds: int) -> float:
    rates = Prices(address).find(model, tier, TODAY)
    assert rates is not None
    return rates.cost(tokens, TokenKinds(**kinds)).dollars


@pytest.mark.parametrize(
    ("address", "model"),
    [
        (OPENAI, "gpt-4o"),
        (OPENAI, "gpt-4o-2024-08-06"),
        (ANTHROPIC, "claude-sonnet-4-5-20250929"),
        (GOOGLE, "gemini-2.5-pro"),
        ("https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5"),
        ("https://api.mistral.ai/v1", "mistral-large-latest"),
    ],
)
def test_well_known_models_have_a_price(address: str, model: str) -> None:
    prices = Prices(address)
    assert prices.lists(model)
    rates = prices.find(model)
    assert rates is not None
    cost = rates.cost(TokenCounts(1000, 1000))
    assert not cost.assumed
    assert 0 < cost.dollars < 1


@pytest.mark.parametrize("address", [OPENAI, ANTHROPIC, GOOGLE, "https://openrouter.ai/api/v1"])
def test_the_index_of_names_finds_the_row_that_comes_first_in_the_table(address: str) -> None:
    prices = Prices(address)
    names = {
        name for text in re.findall(r"'[=^~$]([^']+)'", str(prices._models)) for name in (text.lower(), f"{text}-x")
    }
    assert len(names) > 20
    for name in names:
        first = next((row for row in prices._models if _matches(row[0], name)), None)
        assert prices._row(name) is first or first is None  # a date may have another spelling


def test_a_name_that_nobody_has_is_compared_with_few_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent can send many names, and OpenRouter has more than 700 models."""
    tried: list[object] = []

    def matches(match: object, _name: str) -> bool:
        tried.append(match)
        return False

    monkeypatch.setattr("freehold.egress.models.prices._matches", matches)
    prices = Prices("https://openrouter.ai/api/v1")
    assert len(prices._models) > 700
    for _ in range(3):
        prices.find("nobody-knows-me", prices.dearest_tier("nobody-knows-me", "auto"))
        assert not prices.lists("nobody-knows-me")
    assert len(tried) < 50


@pytest.mark.parametrize(
    ("address", "model"),
    [
        ("http://127.0.0.1:11434/v1", "gpt-4o"),
        ("https://llm.example.org/v1", "gpt-4o"),
        ("https://evil.example.org/https://api.openai.com", "gpt-4o"),
    ],
)
def test_a_provider_outside_the_table_has_no_prices(address: str, model: str) -> None:
    assert Prices(address).find(model) is None


@pytest.mark.parametrize("address", [OPENAI, ANTHROPIC, GOOGLE])
def test_a_model_outside_the_table_costs_more_than_any_in_it(address: str) -> None:
    prices = Prices(address)
    unknown = prices.find("no-such-model", today=TODAY)
    assert unknown is not None
    whole = TokenCounts(2 * MILLION, MILLION, cached=MILLION // 2, written=MILLION // 2)
    assert unknown.cost(whole).assumed
    known = ["gpt-4o", "o1-pro", "gpt-5.5", "claude-opus-4-1", "claude-haiku-4-5", "gemini-2.5-pro"]
    listed = [prices.find(model, today=TODAY) for model in known if prices.lists(model)]
    assert listed
    for rates in listed:
        assert rates is not None
        assert rates.cost(whole).dollars <= unknown.cost(whole).dollars


def test_prices_of_gpt_4o_are_those_that_were_published() -> None:
    assert dollars(OPENAI, "gpt-4o", TokenCounts(MILLION, 0)) == pytest.approx(2.5)
    assert dollars(OPENAI, "gpt-4o", TokenCounts(0, MILLION)) == pytest.approx(10)
    assert dollars(OPENAI, "gpt-4o", TokenCounts(MILLION, 0, cached=MILLION)) == pytest.approx(1.25)


@pytest.mark.parametrize(
    ("tier", "price"), [("priority", 17.0), ("fast", 17.0), ("default", 10.0), ("auto", 10.0), (None, 10.0)]
)
def test_a_service_tier_has_its_own_price(tier: str | None, price: float) -> None:
    assert dollars(OPENAI, "gpt-4o", TokenCounts(0, MILLION), tier) == pytest.approx(price)


def test_flex_costs_less_where_the_table_says_so_and_never_more() -> None:
    assert dollars(OPENAI, "gpt-5.1", TokenCounts(0, MILLION), "flex") == pytest.approx(5)
    assert dollars(OPENAI, "gpt-4o", TokenCounts(0, MILLION), "flex") == pytest.approx(10)


def test_auto_may_be_the_dearest_tier_of_the_model() -> None:
    prices = Prices(OPENAI)
    assert prices.dearest_tier("gpt-4o", "auto") == "priority"
    assert prices.dearest_tier("no-such-model", "auto") == "auto"
    assert prices.dearest_tier("gpt-4o", None) is None


@pytest.mark.parametrize("tier", ["fast", "priority", "warp"])
def test_a_tier_without_a_price_counts_as_the_dearest_and_says_so(tier: str) -> None:
    rates = Prices(ANTHROPIC).find("claude-opus-4-6", tier, TODAY)
    assert rates is not None
    cost = rates.cost(TokenCounts(0, MILLION))
    assert cost.assumed
    assert cost.dollars >= UNLISTED_TIER_FACTOR * 25


def test_an_hour_of_cache_costs_more_than_five_minutes() -> None:
    written = TokenCounts(100_000, 0, written=100_000)
    assert dollars(ANTHROPIC, "claude-sonnet-4-5", written) == pytest.approx(0.375)
    assert dollars(ANTHROPIC, "claude-sonnet-4-5", written, written_1h=100_000) == pytest.approx(0.6)
    assert dollars(ANTHROPIC, "claude-sonnet-4-5", written, written_1h=50_000) == pytest.approx(0.4875)


def test_sound_images_and_searches_have_their_own_prices() -> None:
    rates = Rates(
        {"in": 1.0, "out": 2.0, "in_audio": 10.0, "out_audio": 20.0, "in_image": 3.0, "out_image": 30.0, "search": 5.0}
    )
    tokens = TokenCounts(3 * MILLION, 3 * MILLION)
    kinds = TokenKinds(
        input_audio=MILLION, output_audio=MILLION, input_image=MILLION, output_image=MILLION, searches=1_000
    )
    assert rates.cost(tokens, kinds).dollars == pytest.approx(1 + 10 + 3 + 2 + 20 + 30 + 5)


def test_thoughts_cost_what_output_costs_unless_they_have_a_price() -> None:
    tokens, kinds = TokenCounts(0, 2 * MILLION), TokenKinds(reasoning=MILLION)
    assert Rates({"out": 4.0}).cost(tokens, kinds).dollars == pytest.approx(8)
    assert Rates({"out": 4.0, "out_reasoning": 1.0}).cost(tokens, kinds).dollars == pytest.approx(5)


def test_more_of_a_kind_than_there_are_tokens_changes_nothing() -> None:
    """A provider's report that does not add up must not make a request cheaper."""
    rates = Rates({"in": 1.0, "out": 4.0, "out_audio": 8.0})
    kinds = TokenKinds(output_audio=5 * MILLION, input_audio=5 * MILLION)
    assert rates.cost(TokenCounts(MILLION, MILLION), kinds).dollars == pytest.approx(9)


def test_beyond_a_threshold_every_token_costs_the_higher_price() -> None:
    rates = Rates({"in": [1.0, [200_000, 2.0]], "out": 4.0})
    assert rates.cost(TokenCounts(100_000, 0)).dollars == pytest.approx(0.1)
    assert rates.cost(TokenCounts(200_000, 0)).dollars == pytest.approx(0.4)


def test_a_kind_of_token_without_a_price_counts_as_the_dearest() -> None:
    rates = Rates({"in": 1.0}, {"in": 7.0, "out": 50.0})
    cost = rates.cost(TokenCounts(10, 10))
    assert cost.assumed
    assert cost.dollars == pytest.approx(0.00001 + 0.0005)
    assert not rates.cost(TokenCounts(10, 0)).assumed
    assert rates.cost(TokenCounts(10, 0, cached=10)).dollars == pytest.approx(0.00001)


def test_the_most_is_never_less_than_the_cost() -> None:
    rates = Rates({"in": 1.0, "out": 2.0, "write": 1.25, "write_1h": 2.0, "read": 0.1, "out_audio": 9.0})
    tokens = TokenCounts(MILLION, MILLION, cached=1000, written=500_000)
    most = rates.most(TokenCounts(MILLION, MILLION), long_cache=True).dollars
    assert most == pytest.approx(2 + 9)
    assert rates.cost(tokens, TokenKinds(written_1h=500_000, output_audio=MILLION)).dollars <= most


def test_a_price_that_changes_while_freehold_runs_counts_from_its_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was looked up before midnight is not used after it."""
    clock = Mock(wraps=datetime)
    monkeypatch.setattr("freehold.egress.models.prices.datetime", clock)
    prices = Prices("https://api.anthropic.com")
    long = TokenCounts(500_000, 1_000)
    clock.now.return_value = datetime(2026, 3, 12, 23, 59, tzinfo=UTC)
    before = prices.find("claude-opus-4-6")
    clock.now.return_value = datetime(2026, 3, 13, tzinfo=UTC)
    after = prices.find("claude-opus-4-6")
    assert before is not None
    assert after is not None
    assert before.cost(long).dollars > after.cost(long).dollars
    assert after == prices.find("claude-opus-4-6", today=date(2026, 3, 13))
