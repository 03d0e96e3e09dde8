"""Prices of tokens, from the table that ships with Freehold.

What has no price in it counts as the dearest of its provider. A provider that is not in the table has no prices at all.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib.resources import files
from typing import Any

from freehold.egress.models.usage import PLAIN, TokenCounts, TokenKinds

MILLION = 1_000_000
THOUSAND = 1_000
MAX_KNOWN = 1_000
"""Names whose rates are kept in memory: agents can invent names."""
_COMPACT_DATE = re.compile(r"-(20\d\d)(\d\d)(\d\d)$")
_LOWER_TIERS = frozenset({"auto", "default", "standard", "standard_only", "flex", "batch", "scale", "on_demand"})
"""Service tiers that never cost more than the usual price."""
_DEARER_TIERS = ("priority", "fast", "ultrafast")
UNLISTED_TIER_FACTOR = 6.0
"""The most that a provider is known to take for a faster tier, as a multiple: Anthropic's fast mode."""
_INSTEAD = {
    "read": "in",
    "write": "in",
    "write_1h": "write",
    "in_audio": "in",
    "in_image": "in",
    "read_audio": "read",
    "out_audio": "out",
    "out_image": "out",
    "out_reasoning": "out",
}
"""The price that is used for a kind of token when the table has none for it."""


@dataclass(frozen=True)
class Cost:
    """US dollars. `assumed` when a price was missing and the dearest of the provider was used."""

    dollars: float
    assumed: bool = False


@dataclass(frozen=True)
class Rates:
    """Dollars for a million tokens: a number, or a base price and other prices from a number of input tokens on.

    `dearest` are the highest rates of the provider, for what `read` does not have.
    """

    read: Mapping[str, Any]
    dearest: Mapping[str, float] = field(default_factory=dict)
    assumed: bool = False
    window: int | None = None
    """How many tokens the model takes and gives at once; None when the table does not say."""

    def cost(self, tokens: TokenCounts, kinds: TokenKinds = PLAIN) -> Cost:
        fresh = max(0, tokens.input - tokens.cached - tokens.written)
        in_audio, in_image = _part(kinds.input_audio, fresh), _part(kinds.input_image, fresh)
        out_audio, out_image = _part(kinds.output_audio, tokens.output), _part(kinds.output_image, tokens.output)
        long, cached_audio = _part(kinds.written_1h, tokens.written), _part(kinds.cached_audio, tokens.cached)
        reasoning = _part(kinds.reasoning, tokens.output)
        counts = {
            "in": fresh - min(fresh, in_audio + in_image),
            "in_audio": in_audio,
            "in_image": in_image,
            "read": tokens.cached - cached_audio,
            "read_audio": cached_audio,
            "write": tokens.written - long,
            "write_1h": long,
            "out": tokens.output - min(tokens.output, out_audio + out_image + reasoning),
            "out_audio": out_audio,
            "out_image": out_image,
            "out_reasoning": reasoning,
        }
        total, assumed = 0.0, self.assumed
        for name, count in counts.items():
            if count:
                rate, missing = self._rate(name, tokens.input)
                total += count * rate / MILLION
                assumed |= missing
        if kinds.searches:
            rate, missing = self._rate("search", tokens.input)
            total += kinds.searches * rate / THOUSAND
            assumed |= missing
        return Cost(total, assumed)

    def usual_prices(self) -> tuple[float | None, float | None]:
        """Dollars for a million tokens of a short prompt, and of its response; None where there is no price."""
        given, response = (_at(self.read[name], 0) if name in self.read else None for name in ("in", "out"))
        return given, response

    def most(self, tokens: TokenCounts, *, long_cache: bool) -> Cost:
        """What so many tokens cost if every one is of the dearest kind that the model has a price for."""
        inputs = ["in", "write", "in_image", "in_audio", *(["write_1h"] if long_cache else [])]
        outputs = ["out", "out_audio", "out_image", "out_reasoning"]
        total, assumed = 0.0, self.assumed
        for names, count in ((inputs, tokens.input), (outputs, tokens.output)):
            if count:
                found = [self._rate(name, tokens.input) for name in names]
                total += count * max(rate for rate, _missing in found) / MILLION
                assumed |= found[0][1]
        return Cost(total, assumed)

    def _rate(self, name: str, given: int) -> tuple[float, bool]:
        """The rate of a kind of token, and whether it had to be assumed."""
        wanted: str | None = name
        while wanted is not None:
            if wanted in self.read:
                return _at(self.read[wanted], given), False
            wanted = _INSTEAD.get(wanted)
        return self.dearest.get(name, 0.0), True


def _part(count: int, whole: int) -> int:
    return max(0, min(count, whole))


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
        self._dearest = _dearest(self._models)
        for each in ours:
            for other in each["others"]:
                self._models += providers.get(other, {"models": []})["models"]
        self._exact, self._patterns = _index(self._models)
        self._rows: dict[str, Sequence[Any] | None] = {}
        self._known: dict[tuple[str, str | None, date], Rates] = {}

    def find(self, model: str, tier: str | None = None, today: date | None = None) -> Rates | None:
        """The rates of a model in a service tier on a day; those of the dearest when it is not listed.

        None for a provider that has no prices.
        """
        if not self._models:
            return None
        key = (model, tier, today or datetime.now(UTC).date())
        if key not in self._known:
            if len(self._known) > MAX_KNOWN:
                self._known.clear()
            self._known[key] = self._find(model.lower(), tier, key[2].isoformat())
        return self._known[key]

    def _find(self, model: str, tier: str | None, today: str) -> Rates:
        row = self._row(model)
        if row is None:
            return Rates(self._dearest, self._dearest, assumed=True)
        usual = _active(row[1], today)
        window = (row[2] if len(row) > 2 else 0) or None
        tiers: Mapping[str, Any] = row[3] if len(row) > 3 else {}
        if tier is not None and tier in tiers:
            return Rates({**usual, **_active(tiers[tier], today)}, self._dearest, window=window)
        if tier is None or tier in _LOWER_TIERS:
            return Rates(usual, self._dearest, window=window)
        return Rates(self._raised(usual, tier, today), self._dearest, assumed=True, window=window)

    def dearest_tier(self, model: str, tier: str | None) -> str | None:
        """The tier that a request may be charged for: `auto` leaves the choice to the provider."""
        if tier != "auto":
            return tier
        row = self._row(model.lower())
        tiers = row[3] if row is not None and len(row) > 3 else {}
        return next((each for each in _DEARER_TIERS if each in tiers), tier)

    def find_listed(self, model: str) -> Rates | None:
        """The rates of a model that the table has, today; None for any other."""
        return self.find(model) if self.lists(model) else None

    def lists(self, model: str) -> bool:
        """Whether the table has this model."""
        return self._row(model.lower()) is not None

    def _raised(self, usual: Mapping[str, Any], tier: str, today: str) -> dict[str, float]:
        """The dearest that any model of this provider costs in the tier, or the usual price when that is higher."""
        in_tier = [_active(row[3][tier], today) for row in self._models if len(row) > 3 and tier in row[3]]
        factor = 1.0 if in_tier else UNLISTED_TIER_FACTOR
        found = {name: factor * _highest(rate) for name, rate in usual.items()}
        for rates in in_tier or [self._dearest]:
            for name, rate in rates.items():
                found[name] = max(found.get(name, 0.0), _highest(rate))
        return found

    def _row(self, model: str) -> Sequence[Any] | None:
        """The first row that matches the name, or else the name with its date in the other spelling."""
        if model not in self._rows:
            if len(self._rows) > MAX_KNOWN:
                self._rows.clear()
            names = dict.fromkeys((model, _COMPACT_DATE.sub(r"-\1-\2-\3", model)))
            found = next((at for name in names if (at := self._place(name)) is not None), None)
            self._rows[model] = self._models[found] if found is not None else None
        return self._rows[model]

    def _place(self, name: str) -> int | None:
        """Most rows name their models, so only a few patterns are tried."""
        exact = self._exact.get(name)
        for at, match in self._patterns:
            if exact is not None and at > exact:
                break
            if _matches(match, name):
                return at
        return exact


def _index(models: Sequence[Sequence[Any]]) -> tuple[dict[str, int], list[tuple[int, object]]]:
    """The first row of each name, and all other matches with their rows, in the order of the table."""
    exact: dict[str, int] = {}
    patterns: list[tuple[int, object]] = []
    for at, row in enumerate(models):
        for match in row[0] if isinstance(row[0], list) else [row[0]]:
            if isinstance(match, str) and match.startswith("="):
                exact.setdefault(match[1:].lower(), at)
            else:
                patterns.append((at, match))
    return exact, patterns


def _active(prices: Sequence[Any], today: str) -> Mapping[str, Any]:
    active = [rates for start, rates in prices if start <= today]
    found: Mapping[str, Any] = active[-1] if active else prices[0][1]
    return found


def _highest(rate: float | list[Any]) -> float:
    return max(float(rate[0]), *(float(price) for _start, price in rate[1:])) if isinstance(rate, list) else float(rate)


def _dearest(models: Sequence[Sequence[Any]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, rate in _all_rates(models):
        found[name] = max(found.get(name, 0.0), _highest(rate))
    for name, instead in _INSTEAD.items():  # a model without a price for this kind pays the other one
        found[name] = max(found.get(name, 0.0), found.get(instead, 0.0))
    return found


def _all_rates(models: Sequence[Sequence[Any]]) -> Iterator[tuple[str, Any]]:
    for row in models:
        for sets in (row[1], *(row[3].values() if len(row) > 3 else ())):
            for _start, rates in sets:
                yield from rates.items()


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
