"""Host tools of workflows: an agent lists them, and runs one when the owner has approved its exact text."""

from freehold.agents.sessions.permission_request import make_text_request
from freehold.agents.threads import run_blocking
from freehold.agents.tools.definitions import ask_permission
from freehold.agents.tools.tool import HostTool, Json, ToolCaller
from freehold.computer.contract.conventions import WORKSPACE
from freehold.gateway.services import Services
from freehold.routines.clock import WallClock
from freehold.routines.workflows.records import Workflow, digest_source
from freehold.routines.workflows.section import WorkflowsSection
from freehold.routines.workflows.store import WorkflowOrder, WorkflowStore, check_file

MAX_LISTED = 50
MAX_SHOWN_SOURCE = 16_000
"""Characters of a file that an agent may run: the owner has to read it whole."""


def make_workflow_tools(services: Services) -> list[HostTool]:
    store = WorkflowStore(services.timeline, WallClock())
    return [_list_tool(store), _run_tool(services, store)]


def _list_tool(store: WorkflowStore) -> HostTool:
    async def show(caller: ToolCaller, given: Json) -> str:
        await run_blocking(store.prepare)
        found = await run_blocking(lambda: store.list_workflows(limit=MAX_LISTED))
        return "\n".join(_line(workflow) for workflow in found) or "There are no workflows."

    words = "List the user's workflows, the newest first: Python files with durable steps, and how far they are."
    return HostTool("workflows_list", words, {}, (), show)


def _run_tool(services: Services, store: WorkflowStore) -> HostTool:
    async def run(caller: ToolCaller, given: Json) -> str:
        file = given["file"]
        check_file(file)
        await run_blocking(store.prepare)
        source = await services.computer.files.read_text(f"{WORKSPACE}/{file}", limit=MAX_SHOWN_SOURCE)
        budget = services.manifest.section(WorkflowsSection).budget
        await ask_permission(caller, make_text_request("host", f"Run the workflow {file}", source))
        # Only the text that the owner has read: a file that changes meanwhile does not run.
        order = WorkflowOrder(file, {}, budget, digest=digest_source(source))
        return _line(await run_blocking(lambda: store.add(order, who=f"session:{caller.session}")))

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


def _line(workflow: Workflow) -> str:
    return f"{workflow.id}  {workflow.file}  {workflow.state}"
