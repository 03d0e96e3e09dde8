"""What the owner does here by hand, told to history: whose it is and why. A keeper that is away does not stop work."""

import contextlib
from collections.abc import AsyncIterator
from typing import Literal

from starlette.requests import Request

from freehold.errors import FreeholdError
from freehold.gateway.guard import principal_of
from freehold.gateway.house import House

LONGEST_WHY = 300


async def note(house: House, phase: Literal["before", "during", "after"], who: dict[str, str], why: str) -> None:
    with contextlib.suppress(FreeholdError):
        await house.keeper.call("history.note", {"phase": phase, "who": who, "why": why[:LONGEST_WHY]})


@contextlib.asynccontextmanager
async def acting(house: House, request: Request, why: str) -> AsyncIterator[None]:
    """Around one change of files, the owner's or that of a program with a token. One that fails has changed nothing."""
    principal = principal_of(request.scope)
    who = {"by": "owner"} if principal.token is None else {"by": "owner", "agent": principal.who}
    await note(house, "before", who, why)
    yield
    await note(house, "after", who, why)
