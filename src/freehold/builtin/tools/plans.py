"""plan."""

from typing import Literal, NotRequired, TypedDict

from freehold.builtin.tool_context import ToolContext


class PlanEntry(TypedDict):
    """One item of a plan."""

    content: str
    status: NotRequired[Literal["pending", "in_progress", "completed"]]
    priority: NotRequired[Literal["high", "medium", "low"]]


async def plan(ctx: ToolContext, entries: list[PlanEntry]) -> str:
    """Show the user the plan of a task with several steps, and its progress. Give the complete plan each time.

    Args:
        entries: The items in order.
    """
    rows = [{"status": "pending", "priority": "medium", **entry} for entry in entries]
    await ctx.send_update({"sessionUpdate": "plan", "entries": rows})
    return f"{sum(row['status'] == 'completed' for row in rows)} of {len(rows)} done"
