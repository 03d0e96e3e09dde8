"""What an agent lets be chosen: modes, models and whatever else it offers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from freehold.agents.acp import Agent
from freehold.agents.registry import Entry
from freehold.agents.rpc import Json
from freehold.errors import FreeholdError
from freehold.manifest.features import UNASKED_MODES

MOST = 200


def is_unasked(mode: str) -> bool:
    """Whether an agent in this mode acts without asking."""
    return mode.lower().replace("_", "-").replace("-", "") in {one.replace("-", "") for one in UNASKED_MODES}


@dataclass
class Options:
    """As the agent last told them; decoded with suspicion."""

    mode: str | None = None
    modes: list[Json] = field(default_factory=list)
    model: str | None = None
    models: list[Json] = field(default_factory=list)
    config: list[Json] = field(default_factory=list)

    def read_session(self, answer: Json) -> None:
        """From what session/new, load, resume or fork answered."""
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
        self.config = [one for each in listed[:50] if (one := _option(each)) is not None]
        for one in self.config:
            if one["category"] == "mode" and isinstance(one["value"], str):
                self.mode, self.modes = one["value"], self.modes or one["choices"]

    def update(self, update: Json) -> bool:
        """Takes what an update tells; says whether it told anything of options."""
        kind = update.get("sessionUpdate")
        if kind == "current_mode_update":
            self.mode = _text(update.get("currentModeId")) or self.mode
        elif kind == "config_option_update":
            self.read_config(update.get("configOptions"))
        else:
            return False
        return True

    def offers(self, choices: list[Json], value: str) -> bool:
        return any(one["id"] == value for one in choices)

    def as_json(self, *, asks: bool) -> Json:
        """Modes that would act unasked are not offered."""
        return {
            "mode": self.mode,
            "modes": [one for one in self.modes if not is_unasked(one["id"])],
            "model": self.model,
            "models": self.models,
            "config": [
                {**one, "choices": [each for each in one["choices"] if not is_unasked(each["id"])]}
                if one["category"] == "mode"
                else one
                for one in self.config
            ],
            "asks": asks,
        }


async def choose(agent: Agent, session: str, options: Options, name: str, value: str | bool) -> None:
    """Sets one option. Raises `session.no-option` when the agent does not offer it."""
    known = next((one for one in options.config if one["id"] == name), None)
    is_mode = name == "mode" or (known is not None and known["category"] == "mode")
    if is_mode and isinstance(value, str) and is_unasked(value):
        raise FreeholdError(
            "session.unasked-mode.permission",
            f"In the mode {value!a:.60} the agent would act without asking",
            hint="Allow what you trust by rules instead: PUT /v1/approvals/policy",
        )
    if known is not None:
        if known["choices"] and not options.offers(known["choices"], str(value)):
            raise _no_option(name, value)
        options.read_config((await agent.set_option(session, name, value)).get("configOptions"))
        for one in options.config:
            if one["id"] == name:
                one["value"] = value
        if is_mode:
            options.mode = str(value)
    elif name == "mode" and isinstance(value, str) and options.offers(options.modes, value):
        await agent.set_mode(session, value)
        options.mode = value
    elif name == "model" and isinstance(value, str) and options.offers(options.models, value):
        await agent.set_model(session, value)
        options.model = value
    else:
        raise _no_option(name, value)


async def make_it_ask(agent: Agent, entry: Entry, session: str, options: Options) -> bool:
    """Puts it into the mode that asks; says whether it is one that asks now."""
    if entry.mode is not None and options.mode != entry.mode and options.offers(options.modes, entry.mode):
        await agent.set_mode(session, entry.mode)
        options.mode = entry.mode
    return entry.asks and (options.mode is None or not is_unasked(options.mode))


def _no_option(name: str, value: object) -> FreeholdError:
    return FreeholdError("session.no-option", f"The agent does not offer {str(value)!a:.60} for {name!a:.60}")


def _text(value: object) -> str | None:
    return value[:200] if isinstance(value, str) else None


def _choices(listed: object, key: str) -> list[Json]:
    """Options may come in groups; they are told one after the other."""
    found: list[Json] = []
    for one in listed[:MOST] if isinstance(listed, list) else []:
        if not isinstance(one, dict):
            continue
        if isinstance(one.get("options"), list):
            found += _choices(one["options"], key)
        elif isinstance(one.get(key), str):
            words = one.get("description")
            found.append(
                {
                    "id": one[key][:200],
                    "name": str(one.get("name") or one[key])[:200],
                    "description": str(words or "")[:300],
                }
            )
    return found[:MOST]


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
