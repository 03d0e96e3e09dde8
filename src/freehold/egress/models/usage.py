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
class ModelUsage:
    """The usage of requests. `cost` is in US dollars; None when the price of any of them is unknown."""

    requests: int
    tokens: TokenCounts
    cost: float | None
    priced: float = 0.0
    """The cost of those with a known price."""
