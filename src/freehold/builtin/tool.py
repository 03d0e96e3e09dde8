"""A tool that the model can call: its description for the model, and the check of what the model gives it."""

import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from freehold.builtin.json_rpc import Json
from freehold.builtin.providers.contract import ToolDescription
from freehold.builtin.tool_context import ToolContext
from freehold.builtin.tool_pictures import ToolOutput

RunTool = Callable[[ToolContext, Json], Awaitable[str | ToolOutput]]

_PLAIN = {str: "string", int: "integer", bool: "boolean", float: "number"}
_PYTHON = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}


@dataclass(frozen=True)
class BuiltinTool:
    """`sequential` tools never run at the same time as others."""

    description: ToolDescription
    run: RunTool
    sequential: bool = False

    @property
    def name(self) -> str:
        return self.description.name


def describe_function(
    function: Callable[..., Awaitable[str]], *, name: str | None = None, sequential: bool = False
) -> BuiltinTool:
    """A tool from a function: its docstring describes it, its signature says what it takes after the context."""
    summary, arguments = _read_docstring(inspect.cleandoc(function.__doc__ or ""))
    hints = get_type_hints(function, include_extras=True)
    properties: Json = {}
    required = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        schema = _schema_of(hints[parameter.name])
        if parameter.name in arguments:
            schema["description"] = arguments[parameter.name]
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
        else:
            schema["default"] = parameter.default
        properties[parameter.name] = schema
    whole = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    async def run(context: ToolContext, given: Json) -> str:
        return await function(context, **given)

    return BuiltinTool(ToolDescription(name or function.__name__, summary, whole), run, sequential)


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    summary, _, rest = text.partition("\nArgs:\n")
    return summary.strip(), dict(re.findall(r"^ {4}(\w+): (.*)$", rest, re.MULTILINE))


def _schema_of(kind: Any) -> Json:
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is NotRequired:
        return _schema_of(get_args(kind)[0])
    if get_origin(kind) is list:
        return {"type": "array", "items": _schema_of(get_args(kind)[0])}
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {
            "type": "object",
            "properties": {name: _schema_of(hint) for name, hint in hints.items()},
            "required": sorted(kind.__required_keys__),
            "additionalProperties": False,
        }
    raise TypeError(f"a tool cannot take {kind!r}")


def check_arguments(given: Json, schema: Json) -> Json:
    """The arguments with numbers and booleans that came as text made right. Raises ValueError with what is wrong."""
    checked = _check(given, schema, "")
    assert isinstance(checked, dict)
    return checked


def _check(value: Any, schema: Json, place: str) -> Any:
    kind = schema.get("type")
    value = _convert(value, kind)
    here = place or "the arguments"
    if isinstance(kind, str) and kind in _PYTHON:
        wrong = not isinstance(value, _PYTHON[kind]) or (isinstance(value, bool) and kind != "boolean")
        if wrong:
            raise ValueError(f"{here} must be of the type {kind}")
    if "enum" in schema and value not in schema["enum"]:
        raise ValueError(f"{here} must be one of {', '.join(map(str, schema['enum']))}")
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [_check(item, schema["items"], f"{here}[{number}]") for number, item in enumerate(value)]
    if isinstance(value, dict):
        return _check_object(value, schema, place)
    return value


def _check_object(value: Json, schema: Json, place: str) -> Json:
    known = schema.get("properties") or {}
    missing = [name for name in schema.get("required") or [] if name not in value]
    if missing:
        raise ValueError(f"{', '.join(missing)} is missing")
    unknown = [name for name in value if name not in known]
    if unknown and schema.get("additionalProperties") is False:
        raise ValueError(f"there is no {', '.join(unknown)}; there are {', '.join(known) or 'no arguments'}")
    before = f"{place}." if place else ""
    return {
        name: _check(below, known[name], f"{before}{name}") if isinstance(known.get(name), dict) else below
        for name, below in value.items()
    }


def _convert(value: Any, kind: object) -> Any:
    if isinstance(value, str) and kind == "integer" and re.fullmatch(r"-?\d{1,15}", value):
        return int(value)
    if isinstance(value, str) and kind == "boolean" and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, float) and kind == "integer" and value.is_integer():
        return int(value)
    return value
