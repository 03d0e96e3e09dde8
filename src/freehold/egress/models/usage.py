"""Tokens, and how they add up."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tokens:
    """Of one or more requests. `input` holds all that was read, of which `cached` from and `written` to a cache."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.written + other.written,
        )


@dataclass(frozen=True)
class Usage:
    """What requests cost. `cost` is in US dollars, and None when nobody knows the price of all of them."""

    requests: int
    tokens: Tokens
    cost: float | None
    priced: float = 0.0
    """What those cost whose price is known."""
