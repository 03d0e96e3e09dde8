"""Token counts and usage."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TokenCounts:
    """Tokens of one or more requests. `input` includes those read from a cache (`cached`) and written to one (`written`)."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: "TokenCounts") -> "TokenCounts":
        return TokenCounts(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.written + other.written,
        )


@dataclass(frozen=True)
class TokenKinds:
    """How many of the counted tokens have a price of their own, and the provider's searches. Used for the price only."""

    written_1h: int = 0
    input_audio: int = 0
    cached_audio: int = 0
    output_audio: int = 0
    input_image: int = 0
    output_image: int = 0
    reasoning: int = 0
    searches: int = 0


PLAIN = TokenKinds()


@dataclass(frozen=True)
class ModelUsage:
    """The usage of requests. `cost` is in US dollars; None when the price of any of them is unknown."""

    requests: int
    tokens: TokenCounts
    cost: float | None
    priced: float = 0.0
    """The cost of those with a known price."""
    assumed: int = 0
    """Requests whose price is not in the table. They count as the dearest of their provider."""
    estimated: int = 0
    """Requests whose tokens the provider did not report. They count with the most that they allow."""

    def __add__(self, other: "ModelUsage") -> "ModelUsage":
        return ModelUsage(
            self.requests + other.requests,
            self.tokens + other.tokens,
            None if self.cost is None or other.cost is None else self.cost + other.cost,
            self.priced + other.priced,
            self.assumed + other.assumed,
            self.estimated + other.estimated,
        )
