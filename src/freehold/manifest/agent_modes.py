"""Session modes in which agents are known to ask before they act. Every other mode counts as one that does not ask."""

import datetime
from collections.abc import Mapping

from freehold.manifest.model import Manifest

ASKING_MODES: Mapping[str, tuple[str, ...]] = {
    "builtin": ("ask", "read-only"),
    "claude": ("default", "plan"),
    # In its mode `auto` Codex writes to the workspace unasked.
    "codex": ("read-only",),
    "gemini": ("default", "plan"),
    # Freehold writes the permissions of its agents `build` and `plan` itself.
    "opencode": ("build", "plan"),
}
"""By agent, the best first. Tried with each of these agents."""

COMMON_ASKING_MODES = ("default", "ask", "always-ask", "manual", "suggest", "read-only", "plan")
"""For an agent that Freehold does not know: names that in every agent we know mean that it asks, or does not act."""

UNASKED_WORDS = (
    "acceptedits",
    "autoaccept",
    "autoapprov",
    "autoedit",
    "autopilot",
    "bypass",
    "dangerous",
    "dontask",
    "fullaccess",
    "fullauto",
    "neverask",
    "skippermission",
    "unattended",
    "yolo",
)
"""In the name of any option, of whatever kind: switching it on would let the agent act without asking."""


def list_asking_modes(agent: str) -> tuple[str, ...]:
    return ASKING_MODES.get(agent, COMMON_ASKING_MODES)


def is_asking_mode(agent: str, mode: str | None) -> bool:
    """Whether this agent is known to ask in this mode. An unknown mode counts as one in which it does not."""
    return mode is not None and _fold(mode) in {_fold(one) for one in list_asking_modes(agent)}


def switches_asking_off(name: str) -> bool:
    """Whether the name of an option, a flag or a variable says that the agent acts without asking."""
    return any(word in _fold(name) for word in UNASKED_WORDS)


def names_unasked(option: str, value: str | bool) -> bool:
    """Whether an option that is no mode, by its name and this value, lets the agent act without asking."""
    if isinstance(value, bool):
        return value and switches_asking_off(option)
    folded = _fold(value)
    if folded in ("auto", "never"):
        return any(word in _fold(option) for word in ("approv", "ask", "mode", "permission", "sandbox"))
    return switches_asking_off(value)


def may_act_unasked(manifest: Manifest, agent: str, today: datetime.date | None = None) -> bool:
    """Whether the owner allows this agent to act without asking: it is described, and the exception holds."""
    exception = manifest.security.exceptions.get("unasked-agent")
    day = today or datetime.datetime.now(tz=datetime.UTC).date()
    return agent in manifest.agents.named and exception is not None and exception.holds_on(day)


def _fold(mode: str) -> str:
    return "".join(char for char in mode.casefold() if char.isalnum())
