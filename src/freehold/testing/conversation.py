"""A request to a model, read into one form for all four APIs."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Api = Literal["chat", "responses", "messages", "gemini"]
Role = Literal["user", "assistant", "tool", "note", "system"]
"""Who wrote a turn. A note is text, or a picture, that an agent adds beside the result of a tool."""

_TOOL_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


@dataclass(frozen=True)
class ConversationTurn:
    role: Role
    text: str


@dataclass(frozen=True)
class OfferedTool:
    """A tool that the model can call. A `custom` one takes plain text. A tool in a namespace is called by both names."""

    name: str
    schema: Mapping[str, Any]
    custom: bool = False
    namespace: str | None = None

    @property
    def title(self) -> str:
        return self.name if self.namespace is None else f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Conversation:
    """The conversation so far, and the tools that can be called."""

    api: Api
    model: str
    turns: tuple[ConversationTurn, ...]
    tools: tuple[OfferedTool, ...]
    stream: bool
    wants_usage: bool
    """Whether a streaming chat asked for its usage. The other APIs always report it."""
    wants_json: bool = False

    def tool(self, name: str) -> OfferedTool | None:
        """By its name, otherwise by the end of its name: agents add a prefix to the tools of MCP servers."""
        exact = (tool for tool in self.tools if name in (tool.name, tool.title))
        return next(exact, None) or next((tool for tool in self.tools if tool.title.endswith(name)), None)


def find_api(path: str) -> Api | None:
    """The API of a path, or None."""
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/responses"):
        return "responses"
    if path.endswith("/messages"):
        return "messages"
    return "gemini" if path.endswith((":generateContent", ":streamGenerateContent")) else None


def read_conversation(api: Api, path: str, body: Mapping[str, Any]) -> Conversation:
    """Raises KeyError, TypeError or AttributeError for a body of another form."""
    turns, tools = _READERS[api]
    streams = path.endswith(":streamGenerateContent") if api == "gemini" else bool(body.get("stream"))
    options = body.get("stream_options") or {}
    wants_json = (body.get("generationConfig") or {}).get("responseMimeType") == "application/json"
    model = path.rpartition("/")[2].partition(":")[0] if api == "gemini" else str(body.get("model"))
    return Conversation(
        api,
        model,
        tuple(turns(body)),
        tuple(tools(body)),
        streams,
        wants_usage=api != "chat" or bool(options.get("include_usage")),
        wants_json=wants_json,
    )


def read_text(content: object) -> str:
    """The text of a content value of any API."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(read_text(part) for part in content)
    if isinstance(content, dict):
        for key in ("text", "content", "output", "parts"):
            if key in content:
                return read_text(content[key])
        return json.dumps(content)
    return str(content)


def _role(name: object) -> Role:
    known: dict[object, Role] = {
        "user": "user",
        "assistant": "assistant",
        "model": "assistant",
        "tool": "tool",
        "system": "system",
        "developer": "system",
    }
    return known.get(name, "user")


def _chat_turns(body: Mapping[str, Any]) -> Iterator[ConversationTurn]:
    for message in body["messages"]:
        content = message.get("content")
        role = "note" if _is_picture(content) else _role(message["role"])
        yield ConversationTurn(role, read_text(content))


def _is_picture(content: object) -> bool:
    """Whether there is nothing but pictures: a result of a tool has none in these APIs, so they come after it."""
    parts = content if isinstance(content, list) else [None]
    return all(isinstance(part, dict) and part.get("type") in ("image_url", "input_image") for part in parts)


def _chat_tools(body: Mapping[str, Any]) -> Iterator[OfferedTool]:
    for tool in body.get("tools") or []:
        if "function" in tool:
            yield OfferedTool(tool["function"]["name"], tool["function"].get("parameters") or {})


def _responses_turns(body: Mapping[str, Any]) -> Iterator[ConversationTurn]:
    given = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind in _TOOL_OUTPUTS:
            yield ConversationTurn("tool", read_text(item.get("output")))
        elif kind == "message":
            role = "note" if _is_picture(item.get("content")) else _role(item.get("role"))
            yield ConversationTurn(role, read_text(item.get("content")))


def _responses_tools(body: Mapping[str, Any]) -> Iterator[OfferedTool]:
    for tool in body.get("tools") or []:
        match tool.get("type"):
            case "function":
                yield OfferedTool(tool["name"], tool.get("parameters") or {})
            case "custom":
                yield OfferedTool(tool["name"], {}, custom=True)
            case "namespace":
                for inner in tool.get("tools", []):
                    yield OfferedTool(inner["name"], inner.get("parameters") or {}, namespace=tool["name"])


def _messages_turns(body: Mapping[str, Any]) -> Iterator[ConversationTurn]:
    for message in body["messages"]:
        content = message.get("content")
        parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        results = [part for part in parts if part.get("type") == "tool_result"]
        if not results:
            yield ConversationTurn(_role(message["role"]), read_text(content))
            continue
        for result in results:
            yield ConversationTurn("tool", read_text(result.get("content")))
        notes = [part["text"] for part in parts if part.get("type") == "text"]
        if notes:
            yield ConversationTurn("note", "\n".join(notes))


def _messages_tools(body: Mapping[str, Any]) -> Iterator[OfferedTool]:
    for tool in body.get("tools") or []:
        if "input_schema" in tool:
            yield OfferedTool(tool["name"], tool["input_schema"])


def _gemini_turns(body: Mapping[str, Any]) -> Iterator[ConversationTurn]:
    for content in body["contents"]:
        parts = content.get("parts", [])
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        for result in results:
            yield ConversationTurn("tool", json.dumps(result.get("response")))
        if not results:
            yield ConversationTurn(_role(content.get("role")), read_text(parts))


def _gemini_tools(body: Mapping[str, Any]) -> Iterator[OfferedTool]:
    for tool in body.get("tools") or []:
        for function in tool.get("functionDeclarations") or []:
            schemas = (function.get(key) for key in ("parametersJsonSchema", "parameters_json_schema", "parameters"))
            yield OfferedTool(function["name"], next((schema for schema in schemas if schema), {}))


_Turns = Callable[[Mapping[str, Any]], Iterator[ConversationTurn]]
_Tools = Callable[[Mapping[str, Any]], Iterator[OfferedTool]]
_READERS: dict[Api, tuple[_Turns, _Tools]] = {
    "chat": (_chat_turns, _chat_tools),
    "responses": (_responses_turns, _responses_tools),
    "messages": (_messages_turns, _messages_tools),
    "gemini": (_gemini_turns, _gemini_tools),
}
