"""What the steps of a workflow have changed, as history tells it."""

import asyncio

from freehold.errors import FreeholdError
from freehold.history.calls import ListEntryChanges
from freehold.keeper.client import KeeperClient
from freehold.routines.workflows.bodies import WorkflowFileBody
from freehold.routines.workflows.records import WorkflowStep

SHOWN = 20
MAX_STEPS = 50
AT_ONCE = 8

ChangedFiles = dict[str, tuple[list[WorkflowFileBody], int]]


async def list_changed_files(keeper: KeeperClient, steps: list[WorkflowStep]) -> ChangedFiles:
    """The first paths that each step has changed, and how many there are, by the place of the step.

    Only of the last steps. A step is left out when history cannot tell, such as for an entry that was removed.
    """
    found: ChangedFiles = {}
    places = asyncio.Semaphore(AT_ONCE)

    async def ask(step: WorkflowStep, entry: int) -> None:
        async with places:
            try:
                changes = await keeper.call(ListEntryChanges(entry, SHOWN))
            except FreeholdError:
                return
        files = [WorkflowFileBody(path=one.path, word=one.word) for one in changes.changes]
        found[step.place] = (files, changes.total)

    wanted = [step for step in steps if step.entry is not None][-MAX_STEPS:]
    await asyncio.gather(*(ask(step, step.entry) for step in wanted if step.entry is not None))
    return found
