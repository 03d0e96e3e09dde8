"""plan."""

from typing import Literal

from pydantic import BaseModel
from pydantic_ai import RunContext

from freehold.builtin.tool_context import ToolContext


class PlanEntry(BaseModel):
    """One item of a plan."""

    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


async def plan(ctx: RunContext[ToolContext], entries: list[PlanEntry]) -> str:
    """Show the user the plan of a task with several steps, and its progress. Give the complete plan each time.

    Args:
        entries: The items in order.
    """
    await ctx.deps.send_update({"sessionUpdate": "plan", "entries": [entry.model_dump() for entry in entries]})
    return f"{sum(entry.status == 'completed' for entry in entries)} of {len(entries)} done"
