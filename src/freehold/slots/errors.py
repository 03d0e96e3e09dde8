"""The errors of slots: one family for all of them."""

from collections.abc import Mapping
from typing import Literal

from freehold.errors import FreeholdError, KindName

SlotProblem = Literal["disabled", "not-found", "claimed", "invalid", "denied", "unavailable", "conflict"]

_KINDS: dict[SlotProblem, KindName] = {
    "disabled": "conflict",
    "not-found": "not-found",
    "claimed": "conflict",
    "invalid": "invalid",
    "denied": "permission",
    "unavailable": "unavailable",
    "conflict": "conflict",
}


class SlotError(FreeholdError):
    """A call that a slot refused. Its code is the slot and the problem: `beads.claimed`."""

    def __init__(
        self, slot: str, problem: SlotProblem, message: str, *, hint: str = "", kind: KindName | None = None
    ) -> None:
        super().__init__(f"{slot}.{problem}", message, hint=hint, kind=kind or _KINDS[problem])
        self.slot = slot
        self.problem = problem
        self.found: Mapping[str, int] = {}
        """How often the privacy filter has seen which kind of private data, when it refused the call."""


def slot_unavailable(slot: str, reason: str) -> SlotError:
    """The slot cannot be reached now. Whether a write that was under way has happened is not known.

    `reason` may be the message of such an error: the words are said once.
    """
    words = f"The {slot} slot cannot be reached: "
    return SlotError(
        slot,
        "unavailable",
        words + reason.removeprefix(words),
        hint=f"Freehold tries again by itself. To check it now: freehold slots try {slot}",
    )
