"""The options of an agent: its modes, its models and its own settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from freehold.agents.acp.json_rpc import Json
from freehold.agents.acp.program import AgentProgram
from freehold.errors import FreeholdError
from freehold.manifest.exceptions import UNASKED_MODES

MAX_CHOICES = 200
MAX_OPTIONS = 50


def is_unattended_mode(mode: str) -> bool:
    """Whether an agent in this mode acts without asking."""
    return mode.lower().replace("_", "").replace("-", "") in {one.replace("-", "") for one in UNASKED_MODES}


@dataclass
class AgentOptions:
    """The options as the agent last reported them. Values of the wrong type are ignored."""

    mode: str | None = None
    modes: list[Json] = field(default_factory=list)
    model: str | None = None
    models: list[Json] = field(default_factory=list)
    config: list[Json] = field(default_factory=list)

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
        for one in self.config:
            if one["category"] == "mode" and isinstance(one["value"], str):
                self.mode, self.modes = one["value"], self.modes or one["choices"]

    def apply_update(self, update: Json) -> bool:
        """Applies a session update. Returns whether it was about options."""
        kind = update.get("sessionUpdate")
        if kind == "current_mode_update":
            self.mode = _text(update.get("currentModeId")) or self.mode
        elif kind == "config_option_update":
            self.read_config(update.get("configOptions"))
        else:
            return False
        return True

    def as_json(self, *, asks: bool) -> Json:
        """Modes in which the agent acts without asking are left out."""
        return {
            "mode": self.mode,
            "modes": [one for one in self.modes if not is_unattended_mode(one["id"])],
            "model": self.model,
            "models": self.models,
            "config": [
                {**one, "choices": [each for each in one["choices"] if not is_unattended_mode(each["id"])]}
                if one["category"] == "mode"
                else one
                for one in self.config
            ],
            "asks": asks,
        }


async def set_option(program: AgentProgram, session: str, options: AgentOptions, name: str, value: str | bool) -> None:
    """Sets one option. Raises `session.no-option` when the agent does not offer it."""
    known = next((one for one in options.config if one["id"] == name), None)
    is_mode = name == "mode" or (known is not None and known["category"] == "mode")
    if is_mode and isinstance(value, str) and is_unattended_mode(value):
        raise FreeholdError(
            "session.unasked-mode.permission",
            f"In the mode {value!a:.60} the agent acts without asking",
            hint="Add permission rules for what you trust instead: PUT /v1/approvals/policy",
        )
    if known is not None:
        if known["choices"] and not _has_choice(known["choices"], str(value)):
            raise _no_option(name, value)
        options.read_config((await program.set_option(session, name, value)).get("configOptions"))
        for one in options.config:
            if one["id"] == name:
                one["value"] = value
        if is_mode:
            options.mode = str(value)
    elif name == "mode" and isinstance(value, str) and _has_choice(options.modes, value):
        await program.set_mode(session, value)
        options.mode = value
    elif name == "model" and isinstance(value, str) and _has_choice(options.models, value):
        await program.set_model(session, value)
        options.model = value
    else:
        raise _no_option(name, value)


async def enter_asking_mode(program: AgentProgram, session: str, options: AgentOptions, mode: str | None) -> bool:
    """Sets the mode in which this agent asks, if it has one. Returns whether the agent asks in its mode now."""
    if mode is not None and options.mode != mode and _has_choice(options.modes, mode):
        await program.set_mode(session, mode)
        options.mode = mode
    return options.mode is None or not is_unattended_mode(options.mode)


def _has_choice(choices: list[Json], value: str) -> bool:
    return any(one["id"] == value for one in choices)


def _no_option(name: str, value: object) -> FreeholdError:
    return FreeholdError("session.no-option", f"The agent does not offer {str(value)!a:.60} for {name!a:.60}")


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
