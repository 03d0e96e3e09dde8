"""plan."""

from typing import Literal

from pydantic import BaseModel
from pydantic_ai import RunContext

from freehold.builtin.work import Work


class Entry(BaseModel):
    """One thing to do."""

    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


async def plan(ctx: RunContext[Work], entries: list[Entry]) -> str:
    """Show the user what you are about to do in several steps, and how far you are. Give the whole plan each time.

    Args:
        entries: What there is to do, in order.
    """
    await ctx.deps.tell({"sessionUpdate": "plan", "entries": [entry.model_dump() for entry in entries]})
    return f"{sum(entry.status == 'completed' for entry in entries)} of {len(entries)} done"
