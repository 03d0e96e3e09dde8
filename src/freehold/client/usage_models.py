"""The replies about usage, budgets and the kill switch as frozen objects."""

from typing import Literal

from freehold.client.models import ApiModel

UsageGrouping = Literal["day", "day_model", "model", "provider", "session", "turn"]
BudgetLimit = Literal["day_cost", "month_cost", "day_tokens", "month_tokens"]


class UsageLineInfo(ApiModel):
    """`cost` in US dollars; None when any price is unknown. `priced` is the cost of the requests with a known price.

    `assumed` requests have no price and count as the dearest of their provider. For `estimated` requests the provider
    reported no tokens.
    """

    key: tuple[str | None, ...]
    requests: int
    input: int
    output: int
    cached: int
    cost: float | None
    priced: float
    assumed: int
    estimated: int


class UsageTable(ApiModel):
    by: UsageGrouping
    rows: tuple[UsageLineInfo, ...]


class BudgetInfo(ApiModel):
    """One limit of a provider or of all (`*`). `reached`: requests are refused until it is lifted or raised."""

    scope: str
    limit: BudgetLimit
    period: str
    of: float
    spent: float
    unpriced: int
    assumed: int
    lifted: bool
    reached: bool


class BudgetListing(ApiModel):
    budgets: tuple[BudgetInfo, ...]


class KillSwitchInfo(ApiModel):
    """Whether it is on, since when, who pulled it and why. `summary` is None while it is at work."""

    stopped: bool
    at: str | None
    who: str | None
    why: str | None
    summary: str | None
