"""Host tools of workflows: an agent lists them, and runs one when the owner has approved its exact text."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from freehold.agents.tools.tool import HostTool, Json, ToolCaller
from freehold.gateway.services import Services

if TYPE_CHECKING:
    from freehold.routines.workflows.tool_calls import WorkflowToolCalls


def make_workflow_tools(services: Services) -> list[HostTool]:
    @cache
    def load() -> "WorkflowToolCalls":
        from freehold.routines.workflows.tool_calls import WorkflowToolCalls

        return WorkflowToolCalls(services)

    return [_list_tool(load), _run_tool(load)]


def _list_tool(load: "Callable[[], WorkflowToolCalls]") -> HostTool:
    async def show(caller: ToolCaller, given: Json) -> str:
        return await load().list()

    words = "List the user's workflows, the newest first: Python files with durable steps, and how far they are."
    return HostTool("workflows_list", words, {}, (), show)


def _run_tool(load: "Callable[[], WorkflowToolCalls]") -> HostTool:
    async def run(caller: ToolCaller, given: Json) -> str:
        return await load().run(caller, given["file"])

    properties: dict[str, Json] = {
        "file": {
            "type": "string",
            "minLength": 4,
            "maxLength": 1000,
            "description": "A Python file, from the workspace on. It has an async def main(data) that awaits step, agent, command, ask, sleep, event and gather of the module freehold_workflow.",
        }
    }
    words = (
        "Run a workflow: a Python file whose steps survive crashes and that may wait for days. The user is asked first."
    )
    return HostTool("workflows_run", words, properties, ("file",), run)
