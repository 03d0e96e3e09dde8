"""Prices come from the table that ships with Freehold; others are unknown."""

from datetime import date

import pytest

from freehold.egress.models.prices import Prices, Rates
from freehold.egress.models.usage import TokenCounts

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("address", "model"),
    [
        ("https://api.openai.com/v1", "gpt-4o"),
        ("https://api.openai.com/v1", "gpt-4o-2024-08-06"),
        ("https://api.anthropic.com", "claude-sonnet-4-5-20250929"),
        ("https://generativelanguage.googleapis.com", "gemini-2.5-pro"),
        ("https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5"),
        ("https://api.mistral.ai/v1", "mistral-large-latest"),
    ],
)
def test_well_known_models_have_a_price(address: str, model: str) -> None:
    rates = Prices(address).find(model)
    assert rates is not None
    cost = rates.cost(TokenCounts(1000, 1000))
    assert cost is not None
    assert 0 < cost < 1


@pytest.mark.parametrize(
    ("address", "model"),
    [
        ("https://api.openai.com/v1", "no-such-model"),
        ("http://127.0.0.1:11434/v1", "gpt-4o"),
        ("https://llm.example.org/v1", "gpt-4o"),
        ("https://evil.example.org/https://api.openai.com", "gpt-4o"),
    ],
)
def test_a_model_outside_the_table_has_an_unknown_price(address: str, model: str) -> None:
    assert Prices(address).find(model) is None


def test_prices_of_gpt_4o_are_those_that_were_published() -> None:
    rates = Prices("https://api.openai.com/v1").find("gpt-4o", date(2026, 1, 1))
    assert rates is not None
    assert rates.cost(TokenCounts(MILLION, 0)) == pytest.approx(2.5)
    assert rates.cost(TokenCounts(0, MILLION)) == pytest.approx(10)
    assert rates.cost(TokenCounts(MILLION, 0, cached=MILLION)) == pytest.approx(1.25)


def test_beyond_a_threshold_every_token_costs_the_higher_price() -> None:
    rates = Rates({"in": [1.0, [200_000, 2.0]], "out": 4.0})
    assert rates.cost(TokenCounts(100_000, 0)) == pytest.approx(0.1)
    assert rates.cost(TokenCounts(200_000, 0)) == pytest.approx(0.4)


def test_a_kind_of_token_without_a_price_makes_the_whole_unknown() -> None:
    assert Rates({"in": 1.0}).cost(TokenCounts(10, 10)) is None
    assert Rates({"in": 1.0}).cost(TokenCounts(10, 0)) == pytest.approx(0.00001)
    assert Rates({"in": 1.0}).cost(TokenCounts(10, 0, cached=10)) == pytest.approx(0.00001)
