"""How many runs there may be: `[slots.orchestrator.settings]` of an orchestrator of this Freehold."""

from dataclasses import dataclass

from freehold.slots.errors import SlotError
from freehold.slots.settings import ExternalSettings

MAX_ACTIVE = 8
MAX_OF_PARENT = 5
MAX_DEPTH = 2
MOST = 1000


@dataclass(frozen=True)
class RunBounds:
    """At work at once: `active` of all, `of_parent` of one session."""

    active: int = MAX_ACTIVE
    of_parent: int = MAX_OF_PARENT

    def check(self, active: int, own: int, depth: int) -> None:
        """Whether there may be one more. Raises `orchestrator.conflict` or `orchestrator.denied`."""
        if active >= self.active:
            raise SlotError(
                "orchestrator",
                "conflict",
                f"There are {active} runs already",
                hint="Wait, or end one; the owner can raise max_active in [slots.orchestrator.settings]",
            )
        if own >= self.of_parent:
            raise SlotError("orchestrator", "conflict", f"You have {own} runs already", hint="Wait for one of them")
        if depth >= MAX_DEPTH:
            raise SlotError("orchestrator", "denied", f"A run may begin others only {MAX_DEPTH - 1} deep")


def read_bounds(settings: ExternalSettings) -> RunBounds:
    """Raises `orchestrator.unavailable`. Those of another Freehold may be left in the settings."""
    settings.require_known("max_active", "max_of_session", "url", "token")
    return RunBounds(
        _read_number(settings, "max_active", MAX_ACTIVE), _read_number(settings, "max_of_session", MAX_OF_PARENT)
    )


def _read_number(settings: ExternalSettings, name: str, default: int) -> int:
    text = settings.find(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MOST):
        raise settings.wrong(
            f"slots.orchestrator.settings.{name} is {text[:40]!a}", f'A whole number from 1 to {MOST}: {name} = "24"'
        )
    return int(text)
