"""The resources and prompts of a server as tools: every agent takes tools, and the owner allows them in the same way.

Their descriptions are Freehold's own and do not change. What a server lists is read when an agent asks for it.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from freehold.agents.visible_text import make_visible
from freehold.errors import FreeholdError
from freehold.mcp.described_tool import DescribedTool

Json = dict[str, Any]
Request = Callable[[str, Json], Awaitable[Json]]
"""Sends a request of this method with these parameters. Raises `mcp.bad-answer` when the server refuses."""

MAX_ROWS = 500
MAX_PAGES = 20
MAX_LINE = 1_000
_NOTHING: Json = {"type": "object", "properties": {}}


def _one_text(name: str, description: str) -> Json:
    return {"type": "object", "properties": {name: {"type": "string", "description": description}}, "required": [name]}


_PROMPT: Json = _one_text("name", "Its name")
_PROMPT["properties"]["arguments"] = {"type": "object", "description": "Its arguments, each a text"}

CONTENT_TOOLS = {
    "resources": (
        DescribedTool("list_resources", "Lists the documents of this server, each with its URI.", _NOTHING),
        DescribedTool("read_resource", "Reads a document of this server.", _one_text("uri", "Its URI, as listed")),
    ),
    "prompts": (
        DescribedTool("list_prompts", "Lists the prepared prompts of this server.", _NOTHING),
        DescribedTool("get_prompt", "Returns a prepared prompt of this server, filled in.", _PROMPT),
    ),
}
"""By the capability that a server declares."""


def list_content_tools(capabilities: object) -> dict[str, DescribedTool]:
    """The tools for what a server says that it has."""
    declared = capabilities if isinstance(capabilities, dict) else {}
    return {tool.name: tool for name, tools in CONTENT_TOOLS.items() if name in declared for tool in tools}


async def call_content_tool(request: Request, tool: str, arguments: Json) -> str:
    """The text of the answer."""
    if tool == "list_resources":
        return await _list_resources(request)
    if tool == "read_resource":
        answer = await request("resources/read", {"uri": _need_text(arguments, "uri")})
        return "\n".join(_show_content(one) for one in _rows(answer, "contents"))
    if tool == "list_prompts":
        rows = await _read_pages(request, "prompts/list", "prompts")
        return "\n".join(_show_prompt(row) for row in rows) or "There are no prompts."
    given = arguments.get("arguments")
    texts = {str(name): str(value) for name, value in given.items()} if isinstance(given, dict) else {}
    answer = await request("prompts/get", {"name": _need_text(arguments, "name"), "arguments": texts})
    return "\n".join(f"{_text(row, 'role')}: {_show_content(row.get('content'))}" for row in _rows(answer, "messages"))


async def _list_resources(request: Request) -> str:
    rows = await _read_pages(request, "resources/list", "resources")
    lines = [_show_resource(row, "uri") for row in rows]
    try:
        rows = await _read_pages(request, "resources/templates/list", "resourceTemplates")
    except FreeholdError as error:
        if error.code != "mcp.bad-answer":
            raise
        rows = []  # it has none: servers need not know the request
    lines += [_show_resource(row, "uriTemplate") for row in rows]
    return "\n".join(lines) or "There are no documents."


async def _read_pages(request: Request, method: str, key: str) -> list[Json]:
    found: list[Json] = []
    cursor: object = None
    for _ in range(MAX_PAGES):
        answer = await request(method, {} if cursor is None else {"cursor": cursor})
        found += _rows(answer, key)
        cursor = answer.get("nextCursor")
        if not isinstance(cursor, str) or not cursor or len(found) >= MAX_ROWS:
            break
    return found[:MAX_ROWS]


def _rows(answer: Json, key: str) -> list[Json]:
    rows = answer.get(key)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _show_resource(row: Json, key: str) -> str:
    words = " ".join(filter(None, (_text(row, "title") or _text(row, "name"), _text(row, "description"))))
    return f"{_text(row, key)} {words}"


def _show_prompt(row: Json) -> str:
    takes = ", ".join(_text(one, "name") + ("" if one.get("required") else "?") for one in _rows(row, "arguments"))
    return f"{_text(row, 'name')}({takes}) {_text(row, 'description')}"


def _show_content(part: object) -> str:
    if not isinstance(part, dict):
        return ""
    inner = part.get("resource")
    text = part.get("text") if not isinstance(inner, dict) else inner.get("text")
    if isinstance(text, str):
        return make_visible(text)
    return f"[{_text(part, 'mimeType') or _text(part, 'type') or 'no text'}]"


def _text(row: Json, key: str) -> str:
    value = row.get(key)
    return make_visible(value[:MAX_LINE], lines=False) if isinstance(value, str) else ""


def _need_text(arguments: Json, name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise FreeholdError("tool.wrong-arguments", f"{name} is missing")
    return value
