"""One host tool: its description and schema for the model, and what it does for a session."""

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from freehold.agents.sessions.approval_store import PermissionAnswer
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.errors import FreeholdError

Json = dict[str, Any]
_KINDS: Mapping[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list}
MAX_TEXT = 1000


@dataclass(frozen=True)
class ToolCaller:
    """The session that calls. `ask` returns the answer of a rule or of the owner; None when the turn ended first."""

    session: str
    ask: Callable[[PermissionRequest], Awaitable[PermissionAnswer | None]]


@dataclass(frozen=True)
class ToolPicture:
    type: str
    content: bytes


@dataclass(frozen=True)
class ToolAnswer:
    """Text for the model, and pictures for one that can see. `from_web`: a part of it came from a web page."""

    text: str
    pictures: tuple[ToolPicture, ...] = ()
    from_web: bool = False

    def as_json(self) -> list[Json]:
        """The content in the form of MCP."""
        shown = [
            {"type": "image", "mimeType": one.type, "data": base64.b64encode(one.content).decode()}
            for one in self.pictures
        ]
        return [{"type": "text", "text": self.text}, *shown]


@dataclass(frozen=True)
class HostTool:
    """`properties` are strings, integers, booleans and lists of strings. Other arguments are refused.

    The session of a run needs the `permission`; one without is for every session. `reads`: what it answers may come from
    elsewhere than the agent and the owner, so that a memory stored after it is one of the output of a tool.
    """

    name: str
    description: str
    properties: Mapping[str, Json]
    required: tuple[str, ...]
    call: Callable[[ToolCaller, Json], Awaitable[str | ToolAnswer]]
    permission: str | None = None
    reads: bool = True

    def limited(self, permission: str, *, reads: bool) -> "HostTool":
        """This tool for sessions with a permission."""
        return replace(self, permission=permission, reads=reads)

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
        """The arguments. Raises `tool.wrong-arguments` when they do not match the schema."""
        if not isinstance(given, dict):
            raise _wrong_arguments(self.name, "the arguments are not an object")
        for name in given:
            if name not in self.properties:
                raise _wrong_arguments(self.name, f"there is no argument {name!a:.60}")
        for name in self.required:
            if name not in given:
                raise _wrong_arguments(self.name, f"{name} is missing")
        for name, value in given.items():
            self._check_value(name, value, self.properties[name])
        return given

    def _check_value(self, name: str, value: object, schema: Json) -> None:
        kind = schema["type"]
        if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
            raise _wrong_arguments(self.name, f"{name} must be of the type {kind}")
        if isinstance(value, str) and not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", MAX_TEXT):
            raise _wrong_arguments(self.name, f"{name} is too {'long' if value else 'short'}")
        if kind == "integer" and not schema.get("minimum", 0) <= value <= schema.get("maximum", 2**31):
            raise _wrong_arguments(self.name, f"{name} is out of range")
        if isinstance(value, list):
            if len(value) > schema["maxItems"]:
                raise _wrong_arguments(self.name, f"{name} has more than {schema['maxItems']} items")
            for one in value:
                self._check_value(name, one, schema["items"])


def _wrong_arguments(tool: str, why: str) -> FreeholdError:
    return FreeholdError("tool.wrong-arguments", f"{tool}: {why}")
