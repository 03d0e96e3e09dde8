"""The models that a provider offers, and which of them is suggested to an owner who has not chosen one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from freehold.egress.models.prices import Prices

MIN_WINDOW = 100_000
USUAL_PRICES = (0.5, 5.0)
"""Dollars for a million input tokens: agents work well with models of this range, and it is no surprise on the bill."""
_WINDOWS = (
    "context_length",
    "context_window",
    "max_model_len",
    "max_context_length",
    "max_input_tokens",
    "inputTokenLimit",
)
"""The names by which providers say how many tokens a model takes."""
_NOT_FOR_TEXT = re.compile(
    r"embed|rerank|minilm|\bbge\b|whisper|\btts\b|transcri|speech|voice|audio|realtime|dall-e|image|imagen|\bveo\b|\bsora\b"
    r"|video|lyria|moderation|guard|\bocr\b|search|research|\baqa\b|davinci|babbage|robotics|computer-use"
)


@dataclass(frozen=True)
class OfferedModel:
    """A model of a provider. Prices are US dollars for a million tokens. None where Freehold does not know.

    `created` is when the provider says that it was made, in seconds since 1970; 0 where it does not say.
    """

    name: str
    input_price: float | None = None
    output_price: float | None = None
    window: int | None = None
    created: float = 0.0
    calls_tools: bool = True


def offer_models(address: str, rows: Mapping[str, Mapping[str, Any]]) -> tuple[OfferedModel, ...]:
    """The rows of a list of models, with what the table of prices knows about them. Blocking: it reads the table."""
    prices = Prices(address)
    found = []
    for name, row in rows.items():
        listed = prices.find_listed(name)
        said = next((row[key] for key in _WINDOWS if isinstance(row.get(key), int) and row[key] > 0), None)
        price = (None, None) if listed is None else listed.usual_prices()
        window = said or (None if listed is None else listed.window)
        created = row.get("created")
        seconds = float(created) if type(created) is int and 0 <= created < 2**53 else 0.0
        found.append(OfferedModel(name, *price, window, seconds, _calls_tools(row)))
    return tuple(found)


def _calls_tools(row: Mapping[str, Any]) -> bool:
    """False where the provider says that a model cannot do what agents need."""
    parameters, methods = row.get("supported_parameters"), row.get("supportedGenerationMethods")
    if isinstance(parameters, list) and "tools" not in parameters:
        return False
    if isinstance(methods, list) and "generateContent" not in methods:
        return False
    capabilities = row.get("capabilities")
    return not (isinstance(capabilities, dict) and capabilities.get("function_calling") is False)


def suggest_model(offered: Sequence[OfferedModel]) -> str | None:
    """The newest one for text with a usual price and a large context; else the first one for text. None without any."""
    texts = [one for one in offered if one.calls_tools and not _NOT_FOR_TEXT.search(one.name.lower())]
    low, high = USUAL_PRICES
    usual = [
        one
        for one in texts
        if one.input_price is not None and low <= one.input_price <= high and (one.window or 0) >= MIN_WINDOW
    ]
    chosen = max(usual, key=lambda one: one.created) if usual else next(iter(texts), None)
    return None if chosen is None else chosen.name
