"""One tool: its words and schema for the model, and what it does for one session."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from freehold.agents.approvals import Answer, Question
from freehold.errors import FreeholdError

Json = dict[str, Any]
_KINDS: Mapping[str, type] = {"string": str, "integer": int}


@dataclass(frozen=True)
class Caller:
    """The session that a token belongs to. `ask` takes the policy's answer or the owner's; None when nobody answers."""

    session: str
    ask: Callable[[Question], Awaitable[Answer | None]]


@dataclass(frozen=True)
class Tool:
    """`properties` are strings and whole numbers; those in `required` must be given. Nothing else is taken."""

    name: str
    description: str
    properties: Mapping[str, Json]
    required: tuple[str, ...]
    call: Callable[[Caller, Json], Awaitable[str]]

    def as_json(self) -> Json:
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": dict(self.properties),
                "required": list(self.required),
                "additionalProperties": False,
            },
        }

    def check(self, given: object) -> Json:
        """The arguments, if they are of the schema's form."""
        if not isinstance(given, dict):
            raise _wrong(self.name, "its arguments are no object")
        for name in given:
            if name not in self.properties:
                raise _wrong(self.name, f"it takes no {name!a:.60}")
        for name in self.required:
            if name not in given:
                raise _wrong(self.name, f"{name} is missing")
        for name, value in given.items():
            schema = self.properties[name]
            if not isinstance(value, _KINDS[schema["type"]]) or isinstance(value, bool):
                raise _wrong(self.name, f"{name} is no {schema['type']}")
            if isinstance(value, str) and len(value) > schema.get("maxLength", 1000):
                raise _wrong(self.name, f"{name} is too long")
            if isinstance(value, int) and not schema.get("minimum", 0) <= value <= schema.get("maximum", 2**31):
                raise _wrong(self.name, f"{name} is out of range")
        return given


def _wrong(tool: str, why: str) -> FreeholdError:
    return FreeholdError("tool.wrong-arguments", f"{tool}: {why}")
