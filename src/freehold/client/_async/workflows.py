"""Python files with durable steps: `home.workflows`."""

from typing import Any

from freehold.client._async.connection import AsyncConnection
from freehold.client.topic_protocol import quote_segment
from freehold.client.workflow_models import WorkflowDetails, WorkflowInfo, WorkflowListPage

WORKFLOWS = "/v1/workflows"


class AsyncWorkflows:
    """The token needs the scope `routines`; to see steps and to answer also `prompt`, to run or retry `terminal` too."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self, *, before: int | None = None, limit: int = 50) -> WorkflowListPage:
        """The newest first."""
        return await self._connection.get(WORKFLOWS, WorkflowListPage, {"before": before, "limit": limit})

    async def get(self, id: str) -> WorkflowDetails:
        """With its steps."""
        return await self._connection.get(_path(id), WorkflowDetails)

    async def run(
        self, file: str, data: dict[str, Any] | None = None, *, budget: float | None = None, asks: str = "park"
    ) -> WorkflowInfo:
        """Begin a workflow. `file` is a Python file, from the workspace on; its main is called with `data`."""
        body = {"file": file, "data": data or {}, "budget": budget, "asks": asks}
        return await self._connection.post(WORKFLOWS, WorkflowInfo, body)

    async def cancel(self, id: str) -> WorkflowInfo:
        """End a workflow and what it has begun. Idempotent."""
        return await self._connection.post(f"{_path(id)}/cancel", WorkflowInfo, {})

    async def retry(self, id: str, *, step: str | None = None) -> WorkflowDetails:
        """Begin a workflow that has ended once more, from a step on, with the file as it is now."""
        return await self._connection.post(f"{_path(id)}/retry", WorkflowDetails, {"step": step})

    async def answer(self, id: str, step: str, answer: str) -> WorkflowDetails:
        """Answer what a workflow asks."""
        return await self._connection.post(f"{_path(id)}/answer", WorkflowDetails, {"step": step, "answer": answer})

    async def signal(self, id: str, name: str, data: dict[str, Any] | None = None) -> WorkflowInfo:
        """Send an event to one workflow. It is kept until the workflow waits for it."""
        return await self._connection.post(f"{_path(id)}/events", WorkflowInfo, {"name": name, "data": data or {}})


def _path(id: str) -> str:
    return f"{WORKFLOWS}/{quote_segment(id)}"
