"""The price table that ships with Freehold: an extract of the package genai-prices, which only this module needs."""

import json
from collections.abc import Iterator
from typing import Any

_KEYS = {"input_mtok": "in", "output_mtok": "out", "cache_read_mtok": "read", "cache_write_mtok": "write"}


def price_table() -> str:
    from importlib.metadata import version

    from genai_prices.data import providers

    table: dict[str, Any] = {}
    for provider in providers:
        models = [[_match(model.match), prices] for model in provider.models if (prices := list(_prices(model.prices)))]
        if models:
            others = list(provider.fallback_model_providers or ())
            table[provider.id] = {"address": provider.api_pattern, "others": others, "models": models}
    lines = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(each, separators=(',', ':'))}" for name, each in table.items()
    )
    source = f"genai-prices {version('genai-prices')} (MIT licence, Pydantic Services Inc.)"
    return f'{{"source": {json.dumps(source)}, "providers": {{\n{lines}\n}}}}\n'


def _prices(prices: Any) -> Iterator[list[Any]]:
    """Each set of prices with the day it starts. Prices for hours of the day are left out: the first price, which is the higher one, is used."""
    for conditional in prices if isinstance(prices, list) else [None]:
        constraint = None if conditional is None else conditional.constraint
        start = getattr(constraint, "start_date", None)
        if constraint is not None and start is None:
            continue
        found = prices if conditional is None else conditional.prices
        told = {short: _number(value) for key, short in _KEYS.items() if (value := getattr(found, key)) is not None}
        if "in" in told or "out" in told:
            yield [str(start) if start else "", told]


def _number(value: Any) -> Any:
    """Dollars a million tokens; with tiers, the base and then each start with its price."""
    if hasattr(value, "tiers"):
        return [float(value.base), *([tier.start, float(tier.price)] for tier in value.tiers)]
    return float(value)


def _match(clause: Any) -> Any:
    for name, mark in (("equals", "="), ("starts_with", "^"), ("ends_with", "$"), ("contains", "~"), ("regex", "/")):
        if hasattr(clause, name):
            return mark + getattr(clause, name)
    if hasattr(clause, "or_"):
        return [_match(each) for each in clause.or_]
    return {"and": [_match(each) for each in clause.and_]}
