"""The options of an agent: its modes, its models and its own settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from freehold.agents.acp.json_rpc import Json
from freehold.manifest.agent_modes import is_asking_mode, is_asking_value, list_asking_modes

MAX_CHOICES = 200
MAX_OPTIONS = 50
MAX_ALL_CHOICES = 2_000
"""Of all settings together: every change of one stores and shows all of them."""


@dataclass(frozen=True)
class ModePolicy:
    """In which modes one agent may be. `agent` is the name by which its modes are known. `wanted` is the mode of the catalogue or the manifest.

    `asks_without_modes`: it is known to ask although it reports no modes. `unasked_allowed`: the owner has granted the
    exception `unasked-agent`.
    """

    agent: str
    wanted: str | None = None
    asks_without_modes: bool = False
    unasked_allowed: bool = False

    def asks_in(self, mode: str | None) -> bool:
        """Whether the agent is known to ask in this mode. None: it reports no mode."""
        return self.asks_without_modes if mode is None else is_asking_mode(self.agent, mode)

    def permits(self, mode: str | None) -> bool:
        return self.unasked_allowed or self.asks_in(mode)

    def permits_value(self, option: Json, value: str | bool) -> bool:
        """Whether this option may get this value."""
        if option["category"] == "mode":
            return isinstance(value, str) and self.permits(value)
        return self.unasked_allowed or _asks_with(option, value)

    def list_modes(self) -> tuple[str, ...]:
        """The modes in which the agent asks, the best first."""
        return list_asking_modes(self.agent)


def _asks_with(option: Json, value: object) -> bool:
    return is_asking_value(option["id"], option["name"], option["category"], value)


@dataclass
class AgentOptions:
    """The options as the agent last reported them. Values of the wrong type are ignored."""

    mode: str | None = None
    modes: list[Json] = field(default_factory=list)
    model: str | None = None
    models: list[Json] = field(default_factory=list)
    config: list[Json] = field(default_factory=list)
    has_unread: bool = False
    """Whether there are options that were not read: too many, or malformed."""

    def read_session(self, answer: Json) -> None:
        """Reads the answer to session/new, load, resume or fork."""
        modes, models = answer.get("modes"), answer.get("models")
        if isinstance(modes, dict):
            self.mode = _text(modes.get("currentModeId"))
            self.modes = _choices(modes.get("availableModes"), "id")
        if isinstance(models, dict):
            self.model = _text(models.get("currentModelId"))
            self.models = _choices(models.get("availableModels"), "modelId")
        self.read_config(answer.get("configOptions"))

    def read_config(self, listed: object) -> None:
        if not isinstance(listed, list):
            return
        self.config = [one for each in listed[:MAX_OPTIONS] if (one := _option(each)) is not None]
        self.has_unread = len(self.config) < len(listed)
        left = MAX_ALL_CHOICES
        for one in self.config:
            one["choices"] = one["choices"][:left]
            left -= len(one["choices"])
        for one in self.config:
            if one["category"] == "mode" and isinstance(one["value"], str):
                self.mode, self.modes = one["value"], self.modes or one["choices"]

    def read_mode(self, mode: str) -> None:
        """The agent is in this mode now."""
        self.mode = mode
        for one in self.config:
            if one["category"] == "mode" and has_choice(one["choices"], mode):
                one["value"] = mode

    def apply_update(self, update: Json) -> bool:
        """Applies a session update. Returns whether it was about options."""
        kind = update.get("sessionUpdate")
        if kind == "current_mode_update":
            self.read_mode(_text(update.get("currentModeId")) or "?")
        elif kind == "config_option_update":
            self.read_config(update.get("configOptions"))
        else:
            return False
        return True

    def asks(self, policy: ModePolicy) -> bool:
        """Whether the agent is known to ask now: in its mode, and with every option as it is set."""
        modes = [one["value"] for one in self.config if one["category"] == "mode"]
        others = [one for one in self.config if one["category"] != "mode"]
        return (
            not self.has_unread
            and all(policy.asks_in(mode) for mode in (self.mode, *modes))
            and all(_asks_with(one, one["value"]) for one in others)
        )

    def find_mode_option(self, mode: str) -> Json | None:
        """The option that sets this mode, of an agent that has one."""
        found = (one for one in self.config if one["category"] == "mode" and has_choice(one["choices"], mode))
        return next(found, None)

    def as_json(self, policy: ModePolicy) -> Json:
        """What the owner may choose. Modes in which the agent is not known to ask are left out."""
        return {
            "mode": self.mode,
            "modes": [one for one in self.modes if policy.permits(one["id"])],
            "model": self.model,
            "models": self.models,
            "config": [
                {**one, "choices": [each for each in one["choices"] if policy.permits_value(one, each["id"])]}
                for one in self.config
            ],
            "asks": self.asks(policy),
        }


def has_choice(choices: list[Json], value: str | bool) -> bool:
    return any(one["id"] == str(value) for one in choices)


def _text(value: object) -> str | None:
    return value[:200] if isinstance(value, str) else None


def _choices(listed: object, key: str) -> list[Json]:
    """The choices in one list. Choices in groups are flattened."""
    found: list[Json] = []
    for one in listed[:MAX_CHOICES] if isinstance(listed, list) else []:
        if not isinstance(one, dict):
            continue
        if isinstance(one.get("options"), list):
            found += _choices(one["options"], key)
        elif isinstance(one.get(key), str):
            found.append(
                {
                    "id": one[key][:200],
                    "name": str(one.get("name") or one[key])[:200],
                    "description": str(one.get("description") or "")[:300],
                }
            )
    return found[:MAX_CHOICES]


def _option(one: Any) -> Json | None:
    if not isinstance(one, Mapping) or not isinstance(one.get("id"), str):
        return None
    value = one.get("currentValue")
    return {
        "id": one["id"][:100],
        "name": str(one.get("name") or one["id"])[:100],
        "category": str(one.get("category") or "")[:40],
        "type": str(one.get("type") or "")[:20],
        "value": value[:200] if isinstance(value, str) else value if isinstance(value, bool) else None,
        "choices": _choices(one.get("options"), "value"),
    }
