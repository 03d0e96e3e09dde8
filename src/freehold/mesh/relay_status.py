"""How the connection to a relay is doing, as it is stored."""

from dataclasses import dataclass
from typing import Literal

RelayStateName = Literal["ok", "away"]


@dataclass(frozen=True)
class RelayStatus:
    """`seen` is when it was last connected."""

    url: str
    state: RelayStateName
    error: str | None
    since: float
    seen: float | None
