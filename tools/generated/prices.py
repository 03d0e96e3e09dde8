"""The price table that ships with Freehold: an extract of the package genai-prices, which only this module needs."""

import json
from collections.abc import Iterator
from typing import Any

_KEYS = {
    "input_mtok": "in",
    "output_mtok": "out",
    "cache_read_mtok": "read",
    "cache_write_mtok": "write",
    "cache_write_1h_mtok": "write_1h",
    "input_audio_mtok": "in_audio",
    "cache_audio_read_mtok": "read_audio",
    "output_audio_mtok": "out_audio",
    "input_image_mtok": "in_image",
    "output_image_mtok": "out_image",
    "output_reasoning_mtok": "out_reasoning",
    "web_searches_kcount": "search",
}
"""All a million tokens, but for web searches, which are a thousand."""


def price_table() -> str:
    from importlib.metadata import version

    from genai_prices.data import providers

    table: dict[str, Any] = {}
    for provider in providers:
        models = [
            [_match(model.match), prices, *_further(model)]
            for model in provider.models
            if (prices := list(_prices(model.prices)))
        ]
        if models:
            others = list(provider.fallback_model_providers or ())
            table[provider.id] = {"address": provider.api_pattern, "others": others, "models": models}
    lines = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(each, separators=(',', ':'))}" for name, each in table.items()
    )
    source = f"genai-prices {version('genai-prices')} (MIT licence, Pydantic Services Inc.)"
    return f'{{"source": {json.dumps(source)}, "providers": {{\n{lines}\n}}}}\n'


def _further(model: Any) -> list[Any]:
    """The context window and the prices by service tier, for a model that has either."""
    tiers: dict[str, list[Any]] = {}
    for variant in model.price_variants or ():
        tier = variant.when.get("service_tier")
        if tier is not None and (told := _told(variant.prices)):
            start = getattr(variant.constraint, "start_date", None)
            tiers.setdefault(tier, []).append([str(start) if start else "", told])
    if not tiers and model.context_window is None:
        return []
    return [model.context_window or 0, *([tiers] if tiers else [])]


def _told(prices: Any) -> dict[str, Any]:
    return {short: _number(value) for key, short in _KEYS.items() if (value := getattr(prices, key)) is not None}


def _prices(prices: Any) -> Iterator[list[Any]]:
    """Each set of prices with the day it starts. Prices for hours of the day are left out: the first price, which is the higher one, is used."""
    for conditional in prices if isinstance(prices, list) else [None]:
        constraint = None if conditional is None else conditional.constraint
        start = getattr(constraint, "start_date", None)
        if constraint is not None and start is None:
            continue
        found = prices if conditional is None else conditional.prices
        told = _told(found)
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
