"""What waits for the owner besides the approvals of sessions: questions of workflows, and network requests.

The feature that asks offers its questions, and another tells and answers them: neither needs to know the other.
"""

import sqlite3
from dataclasses import dataclass
from typing import Protocol

from freehold.egress.network_request import NetworkRequests
from freehold.timeline import Timeline


@dataclass(frozen=True)
class OwnerQuestion:
    """A question of a workflow that waits. Without `choices` it takes any text.

    `number` belongs to this one time that it was asked, and `digest` to its words.
    """

    number: int
    workflow: str
    step: str
    digest: str
    choices: tuple[str, ...]


class OwnerQuestions(Protocol):
    async def list_waiting(self) -> list[OwnerQuestion]:
        """The oldest first. Raises `workflows.unavailable`."""
        ...

    async def answer(self, question: OwnerQuestion, text: str, *, who: str) -> None:
        """Raises `workflow.step.conflict` when it was answered or asked anew meanwhile, and `workflow.bad-value`."""
        ...


@dataclass
class OwnerQuestionBox:
    """`service` is None while no feature offers it: then none of its questions is known."""

    service: OwnerQuestions | None = None


def list_network_requests(timeline: Timeline) -> dict[int, str]:
    """Those that wait, also while no computer runs: by number, what a yes would allow. Blocking."""
    try:
        return {one.id: str(one.pattern) for one in NetworkRequests(timeline).all()}
    except sqlite3.OperationalError:  # nothing was ever asked
        return {}
