"""The questions of workflows, as the gateway offers them to the ways by which the owner is reached."""

from functools import partial
from typing import TYPE_CHECKING

from freehold.gateway.owner_questions import OwnerQuestion
from freehold.routines.workflows.messages import AskInput, read_input
from freehold.routines.workflows.records import WorkflowStep

if TYPE_CHECKING:
    from freehold.routines.workflows.service import WorkflowService


class WorkflowQuestions:
    """An `OwnerQuestions`."""

    def __init__(self, service: "WorkflowService") -> None:
        self._service = service

    async def list_waiting(self) -> list[OwnerQuestion]:
        await self._service.wait_ready()
        store = self._service.store
        return [_describe(step) for step in await store.journal.run(store.steps.list_open_steps, "ask")]

    async def answer(self, question: OwnerQuestion, text: str, *, who: str) -> None:
        store = self._service.store
        answer = partial(store.steps.answer, who=who, number=question.number)
        await store.journal.run(answer, question.workflow, question.step, text)


def _describe(step: WorkflowStep) -> OwnerQuestion:
    asked = read_input(step.kind, step.given)
    assert isinstance(asked, AskInput)
    return OwnerQuestion(step.number, step.workflow, step.place, step.digest, asked.choices)
