"""A request to a model, read into one shape whichever of the four APIs it was written for."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Api = Literal["chat", "responses", "messages", "gemini"]
Role = Literal["user", "assistant", "tool", "note", "system"]
"""Who speaks; a note is what a harness adds beside a tool's result."""

_TOOL_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


@dataclass(frozen=True)
class Turn:
    role: Role
    text: str


@dataclass(frozen=True)
class Tool:
    """A tool the model may call. A `custom` one takes plain text; one of a namespace is called by both names."""

    name: str
    schema: Mapping[str, Any]
    custom: bool = False
    namespace: str | None = None

    @property
    def title(self) -> str:
        return self.name if self.namespace is None else f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Conversation:
    """What was said so far and what may be called."""

    api: Api
    model: str
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...]
    stream: bool
    wants_usage: bool
    """Whether a chat that streams also asked for its usage; the other APIs always tell."""
    wants_json: bool = False

    def tool(self, name: str) -> Tool | None:
        """By its name, else by the end of it: harnesses put a prefix before the tools of others."""
        exact = (tool for tool in self.tools if name in (tool.name, tool.title))
        return next(exact, None) or next((tool for tool in self.tools if tool.title.endswith(name)), None)


def api_of(path: str) -> Api | None:
    """The API that a path belongs to, or None."""
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/responses"):
        return "responses"
    if path.endswith("/messages"):
        return "messages"
    return "gemini" if path.endswith((":generateContent", ":streamGenerateContent")) else None


def read_conversation(api: Api, path: str, body: Mapping[str, Any]) -> Conversation:
    """Raises KeyError, TypeError or AttributeError for a body of another shape."""
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


def text_of(content: object) -> str:
    """The words in whatever an API calls content."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part) for part in content)
    if isinstance(content, dict):
        for key in ("text", "content", "output", "parts"):
            if key in content:
                return text_of(content[key])
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


def _chat_turns(body: Mapping[str, Any]) -> Iterator[Turn]:
    for message in body["messages"]:
        yield Turn(_role(message["role"]), text_of(message.get("content")))


def _chat_tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    for tool in body.get("tools") or []:
        if "function" in tool:
            yield Tool(tool["function"]["name"], tool["function"].get("parameters") or {})


def _responses_turns(body: Mapping[str, Any]) -> Iterator[Turn]:
    given = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind in _TOOL_OUTPUTS:
            yield Turn("tool", text_of(item.get("output")))
        elif kind == "message":
            yield Turn(_role(item.get("role")), text_of(item.get("content")))


def _responses_tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    for tool in body.get("tools") or []:
        match tool.get("type"):
            case "function":
                yield Tool(tool["name"], tool.get("parameters") or {})
            case "custom":
                yield Tool(tool["name"], {}, custom=True)
            case "namespace":
                for inner in tool.get("tools", []):
                    yield Tool(inner["name"], inner.get("parameters") or {}, namespace=tool["name"])


def _messages_turns(body: Mapping[str, Any]) -> Iterator[Turn]:
    for message in body["messages"]:
        content = message.get("content")
        parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        results = [part for part in parts if part.get("type") == "tool_result"]
        if not results:
            yield Turn(_role(message["role"]), text_of(content))
            continue
        for result in results:
            yield Turn("tool", text_of(result.get("content")))
        notes = [part["text"] for part in parts if part.get("type") == "text"]
        if notes:
            yield Turn("note", "\n".join(notes))


def _messages_tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    for tool in body.get("tools") or []:
        if "input_schema" in tool:
            yield Tool(tool["name"], tool["input_schema"])


def _gemini_turns(body: Mapping[str, Any]) -> Iterator[Turn]:
    for content in body["contents"]:
        parts = content.get("parts", [])
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        for result in results:
            yield Turn("tool", json.dumps(result.get("response")))
        if not results:
            yield Turn(_role(content.get("role")), text_of(parts))


def _gemini_tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    for tool in body.get("tools") or []:
        for function in tool.get("functionDeclarations") or []:
            schemas = (function.get(key) for key in ("parametersJsonSchema", "parameters_json_schema", "parameters"))
            yield Tool(function["name"], next((schema for schema in schemas if schema), {}))


_Turns = Callable[[Mapping[str, Any]], Iterator[Turn]]
_Tools = Callable[[Mapping[str, Any]], Iterator[Tool]]
_READERS: dict[Api, tuple[_Turns, _Tools]] = {
    "chat": (_chat_turns, _chat_tools),
    "responses": (_responses_turns, _responses_tools),
    "messages": (_messages_turns, _messages_tools),
    "gemini": (_gemini_turns, _gemini_tools),
}
