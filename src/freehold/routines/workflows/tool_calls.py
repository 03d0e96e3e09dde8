"""What the host tools of workflows do. Loaded at their first call."""

from freehold.agents.sessions.permission_request import make_text_request
from freehold.agents.tools.definitions import ask_permission
from freehold.agents.tools.tool import ToolCaller
from freehold.computer.contract.conventions import WORKSPACE
from freehold.gateway.services import Services
from freehold.routines.clock import WallClock
from freehold.routines.workflows.journal import open_journal
from freehold.routines.workflows.records import Workflow, digest_source
from freehold.routines.workflows.section import WorkflowsSection
from freehold.routines.workflows.store import WorkflowOrder, WorkflowStore, check_file

MAX_LISTED = 50
MAX_SHOWN_SOURCE = 16_000
"""Characters of a file that an agent may run: the owner has to read it whole."""


class WorkflowToolCalls:
    def __init__(self, services: Services) -> None:
        self._services = services
        section = services.manifest.section(WorkflowsSection)
        self._journal = open_journal(section, services.timeline, services.vault.get)
        self._store = WorkflowStore(self._journal, WallClock())

    async def list(self) -> str:
        await self._journal.run(self._journal.prepare)
        found = await self._journal.run(lambda: self._store.list_workflows(limit=MAX_LISTED))
        return "\n".join(_line(workflow) for workflow in found) or "There are no workflows."

    async def run(self, caller: ToolCaller, file: str) -> str:
        check_file(file)
        await self._journal.run(self._journal.prepare)
        source = await self._services.computer.files.read_text(f"{WORKSPACE}/{file}", limit=MAX_SHOWN_SOURCE)
        budget = self._services.manifest.section(WorkflowsSection).budget
        await ask_permission(caller, make_text_request("host", f"Run the workflow {file}", source))
        # Only the text that the owner has read: a file that changes meanwhile does not run.
        order = WorkflowOrder(file, {}, budget, digest=digest_source(source))
        return _line(await self._journal.run(lambda: self._store.add(order, who=f"session:{caller.session}")))


def _line(workflow: Workflow) -> str:
    return f"{workflow.id}  {workflow.file}  {workflow.state}"
