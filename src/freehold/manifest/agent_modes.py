"""Session modes in which agents are known to ask before they act. Every other mode counts as one that does not ask."""

import datetime
import re
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

ASKING_VALUES = (*COMMON_ASKING_MODES, "ask-first", "confirm", "on-request", "prompt", "required", "untrusted")
"""Of an option that speaks of asking: values with which every agent we know asks."""

_STRICT_WORDS = ("approv", "ask", "confirm", "permission", "sandbox")
"""In the name of an option that must be on."""
_LOOSE_WORDS = ("allow", "auto", "trust")
"""In the name of an option that must be off."""
_MODEL_WORDS = ("effort", "model", "reason", "think", "thought")
_PLAIN_WORDS = (*_MODEL_WORDS, "compact", "display", "fast", "format", "output", "save", "scroll", "theme", "update")
"""With one of these, "auto" and "mode" in a name say nothing about asking, as in "Fast mode"."""
_NEGATIONS = ("bypass", "disabl", "dont", "ignore", "never", "skip", "without")
_OFF = ("off", "false", "no", "disabled", "0")
_WORD = re.compile("[a-z]+")
_ON = ("on", "true", "yes", "enabled", "1")


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


def is_asking_value(option: str, name: str, category: str, value: object) -> bool:
    """Whether an agent is known to ask with this value of an option that is no mode.

    A name that speaks of asking needs a value that is known. With any other, only values that say themselves that they
    switch asking off are refused. The agent chooses the category, so that alone makes nothing harmless.
    """
    chooses_model = all(any(word in _fold(one) for word in _MODEL_WORDS) for one in (option, name))
    if isinstance(value, str) and switches_asking_off(value) and not chooses_model:
        return False
    return all(_asks_by_name(one, value) for one in (option, name, category))


def _asks_by_name(name: str, value: object) -> bool:
    whole = _fold(name)
    rest = whole.replace("model", "").replace("task", "")
    for word in UNASKED_WORDS:
        rest = rest.replace(word, "")
    is_plain = any(word in whole for word in _PLAIN_WORDS)
    is_loose = switches_asking_off(name) or any(
        word in rest and not (word == "auto" and is_plain) for word in _LOOSE_WORDS
    )
    is_strict = any(word in rest for word in _STRICT_WORDS)
    if not (is_loose or is_strict or ("mode" in rest and not is_plain)):
        return True
    if not isinstance(value, (str, bool)):
        return False
    folded = _fold(str(value))
    is_negated = any(word in rest for word in _NEGATIONS) or not {"no", "not"}.isdisjoint(_WORD.findall(name.lower()))
    if is_negated:  # "no confirmation" must be off; "disable auto-approval" could mean either
        return folded in _OFF and not is_loose
    known = {_fold(one) for one in ASKING_VALUES}
    return folded in known or folded in (_ON if is_strict and not is_loose else _OFF)


def may_act_unasked(manifest: Manifest, agent: str, today: datetime.date | None = None) -> bool:
    """Whether the owner allows this agent to act without asking: it is described, and the exception holds."""
    exception = manifest.security.exceptions.get("unasked-agent")
    day = today or datetime.datetime.now(tz=datetime.UTC).date()
    return agent in manifest.agents.named and exception is not None and exception.holds_on(day)


def _fold(mode: str) -> str:
    return "".join(char for char in mode.casefold() if char.isalnum())
