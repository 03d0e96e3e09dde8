"""The errors of slots: one family for all of them."""

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

    def __init__(self, slot: str, problem: SlotProblem, message: str, *, hint: str = "") -> None:
        super().__init__(f"{slot}.{problem}", message, hint=hint, kind=_KINDS[problem])
        self.slot = slot
        self.problem = problem


def slot_unavailable(slot: str, reason: str) -> SlotError:
    """The slot cannot be reached now. Whether a write that was under way has happened is not known."""
    return SlotError(
        slot,
        "unavailable",
        f"The {slot} slot cannot be reached: {reason}",
        hint=f"Freehold tries again by itself. To check it now: freehold slots try {slot}",
    )
