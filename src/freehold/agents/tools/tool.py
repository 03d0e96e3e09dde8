"""One tool: its words and schema for the model, and what it does for one session."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from freehold.agents.approvals import Question, Reply
from freehold.errors import FreeholdError

Json = dict[str, Any]
_KINDS: Mapping[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list}
MAX_TEXT = 1000


@dataclass(frozen=True)
class Caller:
    """The session that a token belongs to. `ask` takes the policy's answer or the owner's; None when nobody answers."""

    session: str
    ask: Callable[[Question], Awaitable[Reply | None]]


@dataclass(frozen=True)
class Tool:
    """`properties` are strings, whole numbers, booleans and lists of strings; those in `required` must be given.

    Nothing else is taken.
    """

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
            self._check_one(name, value, self.properties[name])
        return given

    def _check_one(self, name: str, value: object, schema: Json) -> None:
        kind = schema["type"]
        if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
            raise _wrong(self.name, f"{name} is no {kind}")
        if isinstance(value, str) and not schema.get("minLength", 0) <= len(value) <= schema.get(
            "maxLength", MAX_TEXT
        ):
            raise _wrong(self.name, f"{name} is too {'long' if value else 'short'}")
        if kind == "integer" and not schema.get("minimum", 0) <= value <= schema.get("maximum", 2**31):
            raise _wrong(self.name, f"{name} is out of range")
        if isinstance(value, list):
            if len(value) > schema["maxItems"]:
                raise _wrong(self.name, f"{name} has more than {schema['maxItems']}")
            for one in value:
                self._check_one(name, one, schema["items"])


def _wrong(tool: str, why: str) -> FreeholdError:
    return FreeholdError("tool.wrong-arguments", f"{tool}: {why}")
