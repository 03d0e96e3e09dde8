"""The names the keeper answers to on its socket, each registered by the part that can answer."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from freehold.errors import FreeholdError
from freehold.keeper.params import decode_params

P = TypeVar("P")
Call = Callable[[object], Awaitable[Any]]
Stream = Callable[[object], AsyncIterator[Any]]


@dataclass(frozen=True)
class NoParams:
    """For methods that take none."""


@dataclass
class Methods:
    """What can be asked. A call answers once and is finished even if its asker leaves; a stream ends with its asker."""

    calls: dict[str, Call] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)

    def add_call(self, name: str, shape: type[P], answer: Callable[[P], Awaitable[Any]]) -> None:
        self.calls[name] = lambda params: answer(decode_params(shape, params))

    def add_stream(self, name: str, shape: type[P], answer: Callable[[P], AsyncIterator[Any]]) -> None:
        self.streams[name] = lambda params: answer(decode_params(shape, params))

    def unknown(self, name: str) -> FreeholdError:
        names = ", ".join(sorted([*self.calls, *self.streams]))
        return FreeholdError("keeper.unknown-method", f"The keeper has no method {name!r}", hint=f"It has: {names}")
