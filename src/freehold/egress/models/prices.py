"""Prices of tokens, from the table that ships with Freehold. A model that is not in it has an unknown price."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from typing import Any

from freehold.egress.models.usage import TokenCounts

MILLION = 1_000_000
_COMPACT_DATE = re.compile(r"-(20\d\d)(\d\d)(\d\d)$")


@dataclass(frozen=True)
class Rates:
    """Dollars for a million tokens: a number, or a base price and other prices from a number of input tokens on."""

    read: Mapping[str, Any]

    def cost(self, tokens: TokenCounts) -> float | None:
        """None when a kind of token that was used has no price."""
        fresh = max(0, tokens.input - tokens.cached - tokens.written)
        total = 0.0
        for name, count in (("in", fresh), ("out", tokens.output), ("read", tokens.cached), ("write", tokens.written)):
            if not count:
                continue
            # A cache without its own price is charged like other input.
            rate = self.read.get(name, self.read.get("in") if name in ("read", "write") else None)
            if rate is None:
                return None
            total += count * _at(rate, tokens.input)
        return total / MILLION


def _at(rate: float | list[Any], given: int) -> float:
    if not isinstance(rate, list):
        return rate
    found = rate[0]
    for start, price in rate[1:]:
        if given >= start:
            found = price
    return float(found)


class Prices:
    """The rates of the models at one address. Making it blocks: it reads the table and keeps what it needs."""

    def __init__(self, address: str) -> None:
        table: dict[str, Any] = json.loads(files("freehold.egress.models").joinpath("prices.json").read_text())
        providers = table["providers"]
        ours = [each for each in providers.values() if re.match(each["address"], address)]
        self._models: list[Sequence[Any]] = [model for each in ours for model in each["models"]]
        for each in ours:
            for other in each["others"]:
                self._models += providers.get(other, {"models": []})["models"]
        self._known: dict[str, Rates | None] = {}

    def find(self, model: str, today: date | None = None) -> Rates | None:
        if model not in self._known:
            if len(self._known) > 1_000:  # agents can invent names
                self._known.clear()
            self._known[model] = self._find(model.lower(), (today or date.today()).isoformat())
        return self._known[model]

    def _find(self, model: str, today: str) -> Rates | None:
        for name in dict.fromkeys((model, _COMPACT_DATE.sub(r"-\1-\2-\3", model))):
            for match, prices in self._models:
                if _matches(match, name):
                    active = [rates for start, rates in prices if start <= today]
                    return Rates(active[-1] if active else prices[0][1])
        return None


def _matches(match: object, name: str) -> bool:
    if isinstance(match, list):
        return any(_matches(each, name) for each in match)
    if isinstance(match, dict):
        return all(_matches(each, name) for each in match["and"])
    assert isinstance(match, str)
    mark, text = match[0], match[1:].lower()
    match mark:
        case "=":
            return name == text
        case "^":
            return name.startswith(text)
        case "$":
            return name.endswith(text)
        case "~":
            return text in name
        case _:
            return re.search(str(match)[1:], name) is not None
