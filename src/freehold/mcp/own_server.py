"""Freehold as an MCP server: the messages of streamable HTTP, one at a time and without sessions."""

import json
from collections.abc import Callable

from freehold import __version__
from freehold.agents.tools.tool import ToolAnswer
from freehold.errors import FreeholdError
from freehold.mcp.own_tools import OWN_TOOLS, Json, OwnCaller

VERSIONS = ("2025-06-18", "2025-03-26")


async def answer_message(body: bytes, make_caller: Callable[[], OwnCaller]) -> Json | None:
    """None for a notification. Errors are answers, too."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return _error(None, -32700, "The body is not valid JSON")
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return _error(None, -32600, "The body is not a JSON-RPC request")
    number, given = message.get("id"), message.get("params")
    if number is None:
        return None
    try:
        result = await _dispatch(message["method"], given if isinstance(given, dict) else {}, make_caller)
    except FreeholdError as error:
        return _error(number, -32602, error.message)
    return {"jsonrpc": "2.0", "id": number, "result": result}


async def _dispatch(method: str, given: Json, make_caller: Callable[[], OwnCaller]) -> Json:
    match method:
        case "initialize":
            version = given.get("protocolVersion")
            return {
                "protocolVersion": version if version in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "freehold", "version": __version__},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [tool.as_json() for tool in OWN_TOOLS.values()]}
        case "tools/call":
            return await _call(given, make_caller)
        case _:
            raise FreeholdError("tool.not-found", f"There is no method {method!a:.60}")


async def _call(given: Json, make_caller: Callable[[], OwnCaller]) -> Json:
    tool = OWN_TOOLS.get(str(given.get("name")))
    if tool is None:
        raise FreeholdError("tool.not-found", f"There is no tool {given.get('name')!a:.60}")
    arguments = tool.check(given.get("arguments") or {})
    caller = make_caller()
    try:
        answer, failed = await tool.call(caller, arguments), False
    except FreeholdError as error:
        # The call was valid and failed, for example because the token lacks a scope. The model reads the reason.
        answer, failed = f"{error.message}. {error.next_step}", True
    finally:
        await caller.home.close()
        await caller.connection.close()
    said = answer if isinstance(answer, ToolAnswer) else ToolAnswer(answer)
    return {"content": said.as_json(), "isError": failed}


def _error(number: object, code: int, words: str) -> Json:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": words}}
